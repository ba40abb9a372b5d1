"""Copies of many blocks in memory, in one call that leaves the interpreter to others. Knows nothing of slots' use.

numpy lets go of the interpreter's lock for each block and must have it again for the next: the thread that keeps the
books has it meanwhile, so that bytes and books waited for each other.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books.compiled import Words, aside


def as_rows(data: Words, num_rows: int) -> Words:
    """Bytes as rows of the widest words that fit: eight bytes at a time are copied as fast as memory can."""
    row_bytes = len(data) // num_rows
    words = data if row_bytes % 8 else data.view(np.uint64)
    return words.reshape(num_rows, -1)


def copy_rows(source: Words, target: Words, pairs: Sequence[tuple[int, int]]) -> None:
    """`pairs` are (row there, row here)."""
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    _copy(source, target, rows)


@aside
def _copy(source: Words, target: Words, rows: Words) -> None:
    for pair in range(len(rows)):
        given, taken = source[rows[pair, 0]], target[rows[pair, 1]]
        for place in range(len(given)):
            taken[place] = given[place]
