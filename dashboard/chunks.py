"""Packs stretches of time buckets into bytes and back: 360 buckets a chunk. Knows no series, no database.

A chunk has two columns, the buckets' values and how many readings went into each; a bucket without readings is one that
is not there. Each column is stored in the narrowest integers that hold it, first all lowest bytes, then all next ones
(most high bytes are alike), and all of it is deflated: an hour of ten-second increases of some thousand tokens takes
about two bytes a bucket, where a row of PostgreSQL takes a hundred.
"""

import zlib
from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

from dashboard.little_endian import little

NUM_BUCKETS = 360
_VERSION = 1
# A window of 2 KiB and as small a hash: 35 µs a chunk instead of 128 with zlib's usual ones, whose tables are 256 KiB.
_LEVEL, _WINDOW_BITS, _MEMORY = 1, 11, 3
_LIMIT = 2**63 - 1
_TYPES = ("b", "h", "i", "q")
_ITEM_BYTES = tuple(array(code).itemsize for code in _TYPES)
_MAX_BYTES = 2 * NUM_BUCKETS * max(_ITEM_BYTES)


class ChunkError(ValueError):
    """Stored bytes are not a chunk; the message says what is wrong with them."""


def span_seconds(resolution: int) -> int:
    """What a chunk covers: an hour, six hours, 15 days, 360 days. It starts at a multiple of that."""
    return NUM_BUCKETS * resolution


def place_of(start_at: int, resolution: int) -> tuple[int, int]:
    """The start of a bucket's chunk, and its index there."""
    chunk_start = start_at - start_at % span_seconds(resolution)
    return chunk_start, (start_at - chunk_start) // resolution


@dataclass(frozen=True)
class Buckets:
    """Σ value and number of readings of each bucket, NUM_BUCKETS of both."""

    values: MutableSequence[int]
    num_samples: MutableSequence[int]

    @staticmethod
    def empty() -> "Buckets":
        return Buckets([0] * NUM_BUCKETS, [0] * NUM_BUCKETS)

    @property
    def is_empty(self) -> bool:
        return not any(self.num_samples)


def storable(value: int) -> int:
    """A sum beyond 64 bits is stored as the largest they hold: only a gauge above 10^15 comes to that, in a day."""
    return max(-_LIMIT, min(_LIMIT, value))


def pack(chunk: Buckets) -> bytes:
    """Values as `storable` has them."""
    columns = [_narrowest(chunk.values), _narrowest(chunk.num_samples)]
    head = bytes((_VERSION, *(_TYPES.index(column.typecode) for column in columns)))
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY)
    return head + deflate.compress(b"".join(map(_planes, columns))) + deflate.flush()


def unpack(packed: bytes | memoryview) -> Buckets:
    """Raises ChunkError."""
    raw, edge, kinds = _inflated(packed)
    return Buckets(_column(raw[:edge], kinds[0]), _column(raw[edge:], kinds[1]))


def unpacked_sums(packed: bytes | memoryview, first: int, end: int) -> tuple[int, int, int]:
    """Σ value and Σ number of samples of a few buckets, and where the newest is that has any (-1: none has).

    In half the time of unpacking all. Raises ChunkError.
    """
    raw, edge, _ = _inflated(packed)
    planes = (raw[begins : begins + NUM_BUCKETS] for begins in range(edge, len(raw), NUM_BUCKETS))
    newest = max(len(plane.rstrip(b"\0")) for plane in planes) - 1
    return _sum(raw, first, end, 0, edge), _sum(raw, first, end, edge, len(raw)), newest


def _sum(raw: bytes, first: int, end: int, begins: int, ends: int) -> int:
    of_bucket = (raw[begins + index : ends : NUM_BUCKETS] for index in range(first, end))
    return sum(int.from_bytes(each, "little", signed=True) for each in of_bucket)


def _inflated(packed: bytes | memoryview) -> tuple[bytes, int, bytes]:
    """Both columns' planes, where the second begins, and the types of both."""
    told = bytes(packed)
    if len(told) < 3 or told[0] != _VERSION or max(told[1:3]) >= len(_TYPES):
        raise ChunkError(f"a chunk begins with {told[:3].hex() or 'nothing'}, which is no form that this version reads")
    try:
        raw = zlib.decompress(told[3:], _WINDOW_BITS, _MAX_BYTES)
    except zlib.error as error:
        raise ChunkError(f"a chunk cannot be inflated: {error}") from None
    edge = NUM_BUCKETS * _ITEM_BYTES[told[1]]
    if len(raw) != edge + NUM_BUCKETS * _ITEM_BYTES[told[2]]:
        raise ChunkError(f"a chunk has {len(raw)} bytes, not {NUM_BUCKETS} buckets")
    return raw, edge, told[1:3]


def _narrowest(column: Sequence[int]) -> "array[int]":
    furthest = max(max(column), -1 - min(column))
    for code, width in zip(_TYPES, _ITEM_BYTES, strict=True):
        if furthest < 1 << (8 * width - 1):
            return array(code, column)
    return array("q", map(storable, column))


def _planes(column: "array[int]") -> bytes:
    raw = little(column).tobytes()
    return b"".join(raw[place :: column.itemsize] for place in range(column.itemsize))


def _column(planes: bytes, kind: int) -> "array[int]":
    width = _ITEM_BYTES[kind]
    raw = bytearray(planes)
    for place in range(width):
        raw[place::width] = planes[place * NUM_BUCKETS : (place + 1) * NUM_BUCKETS]
    column = array(_TYPES[kind])
    column.frombytes(raw)
    return little(column)
