"""Copies of many blocks in memory, in one call that leaves the interpreter to others. Knows nothing of slots' use.

numpy lets go of the interpreter's lock for each block and must have it again for the next: the thread that keeps the
books has it meanwhile, so that bytes and books waited for each other.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books.compiled import Words, aside
from tiers.books.past_cache import LANE_BYTES, copy_past_cache, fence


def as_rows(data: Words, num_rows: int) -> Words:
    """Bytes as rows of the widest words that fit: eight bytes at a time are copied as fast as the caches can."""
    row_bytes = len(data) // num_rows
    words = data if row_bytes % 8 else data.view(np.uint64)
    return words.reshape(num_rows, -1)


def copy_rows(source: Words, target: Words, pairs: Sequence[tuple[int, int]]) -> None:
    """`pairs` are (row there, row here).

    Whole lanes go past the caches: blocks of one operation are more than these hold, and a store through them reads
    first what it overwrites (64 blocks of 0.7 MiB: 6.3 ms instead of 7.6).
    """
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    given, taken, row_bytes = source.ctypes.data, target.ctypes.data, source[0].nbytes
    if given % LANE_BYTES or taken % LANE_BYTES or row_bytes % LANE_BYTES:
        _copy(source, target, rows)
    else:
        _copy_past_cache(given, taken, row_bytes, rows)


@aside
def _copy(source: Words, target: Words, rows: Words) -> None:
    for pair in range(len(rows)):
        given, taken = source[rows[pair, 0]], target[rows[pair, 1]]
        for place in range(len(given)):
            taken[place] = given[place]


@aside
def _copy_past_cache(source: int, target: int, row_bytes: int, rows: Words) -> None:
    for pair in range(len(rows)):
        given, taken = source + rows[pair, 0] * row_bytes, target + rows[pair, 1] * row_bytes
        copy_past_cache(taken, given, row_bytes // LANE_BYTES)
    fence()
