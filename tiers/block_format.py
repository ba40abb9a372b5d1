"""A block outside of memory: its slab and a header that tells whose block it is. Knows nothing about where they lie.

The header is found valid or not by itself, so that a start-up scan reads 256 bytes a file and not the payload.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import xxhash

from tiers.books.compiled import Words
from tiers.books.header import (
    CHECKSUM_BYTES,
    FIELDS,
    FINDINGS,
    HEADER_BYTES,
    MAGIC,
    STRANGE,
    TORN,
    VERSION,
    WHOLE,
    verdict,
)
from tiers.books.tenants import NOBODY
from tiers.compression import Codec, codec_for
from tiers.config import SlabSpec
from tiers.errors import CorruptError
from tiers.keys import KEY_BYTES, BlockKey
from tiers.names import Compression


@dataclass(frozen=True, slots=True)
class Header:
    """`position` is the block's index in its prompt; 0 has no parent block and its parent key is the chain's root."""

    key: BlockKey
    parent_key: BlockKey
    position: int
    num_bytes: int
    layout: bytes
    checksum: bytes
    tenant: str = NOBODY

    def pack(self) -> bytes:
        place = self.position, self.num_bytes, self.key, self.parent_key, self.layout
        fields = FIELDS.pack(MAGIC, VERSION, *place, self.checksum, self.tenant.encode())
        padded = fields.ljust(HEADER_BYTES - CHECKSUM_BYTES, b"\0")
        return padded + xxhash.xxh3_128_digest(padded)


def unpack(data: bytes) -> Header:
    """Raises CorruptError unless these are the whole and unaltered bytes of a header of this version."""
    padded, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    if len(data) != HEADER_BYTES or xxhash.xxh3_128_digest(padded) != checksum:
        raise CorruptError(FINDINGS[TORN])
    magic, version, position, num_bytes, key, parent_key, layout, payload, tenant = FIELDS.unpack_from(padded)
    if (magic, version) != (MAGIC, VERSION):
        raise CorruptError(FINDINGS[STRANGE])
    return Header(key, parent_key, position, num_bytes, layout, payload, tenant.rstrip(b"\0").decode(errors="ignore"))


def stored_bytes(slab: SlabSpec, compression: Compression = Compression.NONE) -> int:
    """What one block takes outside of memory: its header and its slab, as it is written there."""
    return HEADER_BYTES + codec_for(compression, slab).num_bytes


def layout_digest(slab: SlabSpec, block_size: int, fingerprint: str, compression: Compression) -> bytes:
    """Tells blocks of other models, dtypes, shapes, block sizes and compressions apart: 16 bytes."""
    written_as = () if compression is Compression.NONE else (str(compression),)
    identity = (fingerprint, slab.num_bytes, slab.dtype, slab.shape, block_size, *written_as)
    return blake2b(repr(identity).encode(), digest_size=16).digest()


def payload_checksum(payload: memoryview) -> bytes:
    return xxhash.xxh3_128_digest(payload)


@dataclass(frozen=True, slots=True)
class Layout:
    """What all blocks of one model, dtype, shape, block size and compression have in common.

    Others are never read as ours. A payload is a slab that the codec has encoded. `expected` is a header of no block.
    """

    digest: bytes
    codec: Codec
    expected: Words = field(compare=False)

    @classmethod
    def of(cls, slab: SlabSpec, block_size: int, fingerprint: str, compression: Compression) -> "Layout":
        """Raises ValueError where the compression is not for such slabs."""
        digest, codec = layout_digest(slab, block_size, fingerprint, compression), codec_for(compression, slab)
        nobodys = Header(bytes(KEY_BYTES), bytes(KEY_BYTES), 0, codec.num_bytes, digest, bytes(CHECKSUM_BYTES))
        return cls(digest, codec, as_bytes(nobodys.pack()))

    @property
    def num_bytes(self) -> int:
        return self.codec.num_bytes

    def header(
        self, key: BlockKey, parent_key: BlockKey, position: int, payload: memoryview, tenant: str = NOBODY
    ) -> bytes:
        """Of the block that is about to be stored."""
        checksum = payload_checksum(payload)
        return Header(key, parent_key, position, self.num_bytes, self.digest, checksum, tenant).pack()

    def verify(self, header_bytes: bytes, key: BlockKey, payload_digest: bytes) -> None:
        """Raises CorruptError unless header and payload are exactly the block `key` of this layout."""
        high, low = (int.from_bytes(half) for half in (payload_digest[:8], payload_digest[8:]))
        found = verdict(as_bytes(header_bytes), as_bytes(key), self.expected, np.uint64(low), np.uint64(high))
        if found != WHOLE:
            raise CorruptError(FINDINGS[found])


def as_bytes(data: bytes) -> Words:
    return np.frombuffer(data, np.uint8)
