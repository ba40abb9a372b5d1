"""What lies where in a block's header, and whether it and a payload are exactly the block that is asked for.

Knows nothing about where they came from; `block_format` makes headers and reads what they say.
"""

import struct
from typing import Any

from tiers.books.compiled import Words, entry, part
from tiers.books.tenants import MAX_NAME_BYTES
from tiers.books.xxh3 import xxh3_128
from tiers.keys import KEY_BYTES

MAGIC = b"TIERSCPE"
VERSION = 2
HEADER_BYTES = 256
CHECKSUM_BYTES = 16
# magic, version, position in its prompt, payload bytes, key, parent key, layout digest, payload checksum, tenant
# (zeros in what was written before there were tenants: nobody's), and at the header's end its own checksum
FIELDS = struct.Struct(f"<8sIIQ{KEY_BYTES}s{KEY_BYTES}s16s16s{MAX_NAME_BYTES}s")
_POSITION_AT = struct.calcsize("<8sI")
_SIZE_AT = struct.calcsize("<8sII")
_KEY_AT = struct.calcsize("<8sIIQ")
_LAYOUT_AT = _KEY_AT + 2 * KEY_BYTES
_PAYLOAD_AT = _LAYOUT_AT + CHECKSUM_BYTES
_OWN_AT = HEADER_BYTES - CHECKSUM_BYTES

# What a header and a payload were found to be: the block, or else.
WHOLE, TORN, STRANGE, OTHER, ALTERED = range(5)
FINDINGS = {
    TORN: "the header is torn or altered",
    STRANGE: f"it is not a block of version {VERSION}",
    OTHER: "it holds another block",
    ALTERED: "its content is altered",
}


@entry
def verdict(header: Words, key: Words, expected: Words, low: Any, high: Any) -> int:
    """`low` and `high` (uint64) are the payload's XXH3; `expected` is a header of the same layout, of no block."""
    own_low, own_high = xxh3_128(header.ctypes.data, _OWN_AT)
    if not _has_digest(header, _OWN_AT, own_low, own_high):
        return TORN
    if not _same(header, expected, 0, _POSITION_AT):
        return STRANGE
    if not (_same(header, expected, _SIZE_AT, _KEY_AT) and _same(header, expected, _LAYOUT_AT, _PAYLOAD_AT)):
        return OTHER
    for place in range(KEY_BYTES):
        if header[_KEY_AT + place] != key[place]:
            return OTHER
    return WHOLE if _has_digest(header, _PAYLOAD_AT, low, high) else ALTERED


@part
def _same(header: Words, expected: Words, start: int, end: int) -> Any:
    is_same = True
    for place in range(start, end):
        is_same &= header[place] == expected[place]
    return is_same


@part
def _has_digest(header: Words, at: int, low: Any, high: Any) -> Any:
    """Digests are written high word first, each from its highest byte."""
    for place in range(8):
        shift = 56 - 8 * place
        if header[at + place] != (high >> shift) & 0xFF or header[at + 8 + place] != (low >> shift) & 0xFF:
            return False
    return True
