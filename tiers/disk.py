"""The `disk` tier's store: one file a block, whole or not there. Knows nothing about recency or sizes.

Layout: <path>/<fingerprint digest>/<first byte of the key>/<key>.kv, a folder a model, so that models never see each
other's files. A file is a 4,096-byte header and the slab. It is written under a temporary name and renamed, and its
payload carries an XXH3-128 checksum: a torn, flipped or foreign file is CorruptError, never data. No fsync: after a
power cut a block may be missing or torn, and both are misses.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tiers.config import SlabSpec
from tiers.keys import KEY_BYTES, BlockKey
from tiers.pool import BlockPool
from tiers.stores import NO_SLOT

# A page: the payload starts aligned for direct reads.
HEADER_BYTES = 4096
_MAGIC = b"TSCOPEKV"
_VERSION = 1
# magic, version, key, parent key, digest of fingerprint and slab, payload bytes, checksum of payload, of header
_HEADER = struct.Struct(f"<8sI{KEY_BYTES}s{KEY_BYTES}s16sQ16s")
_CHECK_BYTES = 16


class CorruptError(Exception):
    """A block file that is torn, changed or not ours; it says in what."""


@dataclass(frozen=True)
class Found:
    """A whole-looking file at start-up; its payload is verified when it is loaded."""

    key: BlockKey
    parent_key: BlockKey
    written_at: float


def file_bytes(slab: SlabSpec) -> int:
    """What one block takes on disk."""
    return HEADER_BYTES + slab.num_bytes


class DiskStore:
    """Files below one folder. Safe to use from several threads for different keys."""

    has_files = True

    def __init__(self, path: Path, slab: SlabSpec, fingerprint: str) -> None:
        self._slab = slab
        self._digest = xxhash.xxh3_128_digest(f"{fingerprint}\n{slab.dtype}\n{slab.shape}".encode())
        self.path = path / self._digest.hex()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    # -- the interface -----------------------------------------------------------------------------------------------
    def take(self) -> int:
        return NO_SLOT

    def give_back(self, slot: int) -> None:
        pass

    def resize(self, num_blocks: int) -> None:
        pass

    def save(self, slot: int, key: BlockKey, parent_key: BlockKey, data: memoryview) -> None:
        path = self.file_of(key)
        temporary = path.with_suffix(".tmp")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0) as file:
                _write_all(file.fileno(), self._header(key, parent_key, data), data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def load(self, slot: int, key: BlockKey, pool: BlockPool, pool_slot: int) -> None:
        pool.fill(pool_slot, lambda target: self._read(key, target))

    def view(self, slot: int, key: BlockKey) -> memoryview:
        data = memoryview(bytearray(self._slab.num_bytes))
        self._read(key, data)
        return data

    def delete(self, slot: int, key: BlockKey) -> None:
        self.file_of(key).unlink(missing_ok=True)

    # -- files -------------------------------------------------------------------------------------------------------
    def file_of(self, key: BlockKey) -> Path:
        name = key.hex()
        return self.path / name[:2] / f"{name}.kv"

    def scan(self) -> list[Found]:
        """What whole files are there, oldest first; unfinished, torn and foreign ones are removed."""
        found = []
        for entry in self._files():
            try:
                found.append(self._look(entry))
            except (CorruptError, OSError):
                Path(entry.path).unlink(missing_ok=True)
        return sorted(found, key=lambda file: file.written_at)

    def _files(self) -> Iterator["os.DirEntry[str]"]:
        for folder in os.scandir(self.path):
            if folder.is_dir(follow_symlinks=False):
                yield from (entry for entry in os.scandir(folder.path) if entry.is_file(follow_symlinks=False))

    def _look(self, entry: "os.DirEntry[str]") -> Found:
        status = entry.stat()
        if not entry.name.endswith(".kv") or status.st_size != file_bytes(self._slab):
            raise CorruptError(f"{entry.name} was not written to its end")
        with open(entry.path, "rb", 0) as file:
            key, parent_key, _ = self._parse(file.read(HEADER_BYTES))
        if entry.name != f"{key.hex()}.kv":
            raise CorruptError(f"{entry.name} holds another block")
        return Found(key, parent_key, status.st_mtime)

    def _read(self, key: BlockKey, target: memoryview) -> None:
        """One read of header and payload, straight into `target`. Raises CorruptError or OSError."""
        header = bytearray(HEADER_BYTES)
        fd = os.open(self.file_of(key), os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_size != HEADER_BYTES + len(target):
                raise CorruptError("the file's size is wrong")
            _read_all(fd, header, target)
        finally:
            os.close(fd)
        stored_key, _, checksum = self._parse(bytes(header))
        if stored_key != key:
            raise CorruptError("the file holds another block")
        if xxhash.xxh3_128_digest(target) != checksum:
            raise CorruptError("the payload does not match its checksum")

    def _header(self, key: BlockKey, parent_key: BlockKey, data: memoryview) -> bytes:
        checksum = xxhash.xxh3_128_digest(data)
        head = _HEADER.pack(_MAGIC, _VERSION, key, parent_key, self._digest, len(data), checksum)
        return (head + xxhash.xxh3_128_digest(head)).ljust(HEADER_BYTES, b"\0")

    def _parse(self, header: bytes) -> tuple[BlockKey, BlockKey, bytes]:
        """Key, parent key and payload checksum of a header of ours. Raises CorruptError."""
        head, check = header[: _HEADER.size], header[_HEADER.size : _HEADER.size + _CHECK_BYTES]
        if len(header) != HEADER_BYTES or xxhash.xxh3_128_digest(head) != check or any(header[_HEADER.size + 16 :]):
            raise CorruptError("the header is torn or changed")
        magic, version, key, parent_key, digest, num_bytes, checksum = _HEADER.unpack(head)
        if (magic, version, digest, num_bytes) != (_MAGIC, _VERSION, self._digest, self._slab.num_bytes):
            raise CorruptError("the file was written by another version or for another model")
        return key, parent_key, checksum


def _write_all(fd: int, header: bytes, data: memoryview) -> None:
    written = os.writev(fd, [header, data])
    if written < len(header):
        raise OSError("a header could not be written in one piece")
    while written < len(header) + len(data):
        written += os.write(fd, data[written - len(header) :])


def _read_all(fd: int, header: bytearray, target: memoryview) -> None:
    count = os.readv(fd, [header, target])
    if count < len(header):
        raise CorruptError("the file ended early")
    while count < len(header) + len(target):
        more = os.preadv(fd, [target[count - len(header) :]], count)
        if not more:
            raise CorruptError("the file ended early")
        count += more
