"""Columns of the tables, and the tables in one bundle. A row's number is a block's, a copy's or a memory's id.

Tables are int32 but for sums, so that a block with one copy takes 142 bytes, index included. A row that nobody needs
is the head of a chain through its first column and is given out again first.
"""

from typing import Any, NamedTuple

import numpy as np

from tiers.books.compiled import Ints32, Ints64, part


def numbers(first: int, end: int, step: int = 1) -> Any:
    """As numpy's: numba compiles a function anew for every plain number that it is called with."""
    return np.arange(first, end, step)


def number(value: int) -> Any:
    return np.int64(value)


NONE = number(-1)

# -- nodes: blocks that are known, and roots of chains, which have depth −1 and never a copy
KEY = number(0)  # four columns
PARENT, CHILD, ELDER, YOUNGER = numbers(4, 8)  # first child; siblings
DEPTH, NUM_HITS = numbers(8, 10)
# Copies that name it, also those that have left their tier and are still read or under way. It can be found by its key.
NUM_REFS, IS_KNOWN = numbers(10, 12)
MEMORY = number(12)  # the first of what tiers remember of it
TENANT = number(13)  # whose it is, by number (books/tenants.py); says nothing while no tier has it
COPY, NUM_FOLLOWERS = numbers(14, 16)  # two columns a tier: its copy there; children that its tier's policy knows

# -- copies: one block in one tier
NODE, RANK, SLOT, PINS, HOLDS, FLAGS, SOURCE = numbers(0, 7)
QUEUE, NUM_USES, BEFORE, AFTER = numbers(7, 11)  # its policy's
NOTED_BEFORE, NOTED_AFTER = numbers(11, 13)
OWN_BEFORE, OWN_AFTER, NUM_COPY_COLUMNS = numbers(13, 16)  # in its tenant's queue, where the tier has a quota
# Flags: it counts in its tier; the bytes are there; its policy knows it, it is being read, it is in its queue; it was
# used since the others were told; others have removed it; it is in its tenant's queue, or would be.
LIVE, VALID, ENTERED, HELD, QUEUED, NOTED, DOOMED, OWN = 1 << numbers(0, 8)

# -- memories: a block that a tier no longer has; NODE and RANK as above
LIST, HAS_MOVED = numbers(2, 4)
OLDER, NEWER, NEXT, NUM_MEMORY_COLUMNS = numbers(4, 8)  # in its list; of the same block

# -- levels: what each tier counts. A list is three columns: oldest, newest, length.
CAPACITY, NUM_BLOCKS, TIER = numbers(0, 3)  # TIER: its place among all tiers, also those that are not configured
POLICY, WRITE_MODE, STORE_AFTER_HITS = numbers(3, 6)
QUEUES = number(6)  # two lists
SIZES = number(12)  # blocks of each queue, those that are set aside too
NUM_HELD, TARGET = numbers(14, 16)  # the target is a float64 in the place of an integer
NOTES, KEEPS_NOTES = number(16), number(19)
LISTS = number(20)  # of memories: two of a policy's ghosts, two generations of dropped blocks
NEW_DROPS, MAX_DROPS = numbers(32, 34)  # which generation is the newer one; how many blocks it may have
NUM_NEW, NUM_FREED, NUM_DROPPED, NUM_MISSED = numbers(34, 38)
CAME, WENT = number(38), number(42)  # by tier
# Blocks that one tenant may have; tenants that have more; blocks that were not stored because of it.
QUOTA, NUM_OVER, NUM_REFUSED = numbers(46, 49)
NUM_GIVEN_UP = number(49)  # left before their bytes had come; what slower tiers still wait for is taken off again
TENANTS = number(50)  # for each, its blocks here and two queues, as above
TENANT_QUEUES, NUM_TENANT_COLUMNS = number(1), number(7)
MAX_TENANTS = 1_000
NUM_LEVEL_COLUMNS = TENANTS + NUM_TENANT_COLUMNS * MAX_TENANTS
DROPS = number(2)  # the first of the two generations among the lists

# -- counts. A pool is three: rows ever used, the first that is free again, how many are.
NODES, COPIES, MEMORIES, NUM_INDEXED = numbers(0, 10, 3)
NUM_TENANTS, NUM_COUNTS = numbers(10, 12)  # tenants that have a number, or had one

LINE_COLUMNS = 16  # int32 in 64 bytes
GPU = number(0)
NO_QUOTA = number(1 << 62)
LRU, S3FIFO, ARC = numbers(0, 3)
WRITE_BACK, WRITE_THROUGH, WRITE_SELECTIVE = numbers(0, 3)
EVICTED, PROMOTED, DROPPED = numbers(0, 3)


class Tables(NamedTuple):
    """`nodes` [n, 14 + 2 · tiers], `copies` [n, 15], `memories` [n, 7], `places` [2^k], `levels` [tiers, 7,050]."""

    nodes: Ints32
    copies: Ints32
    memories: Ints32
    places: Ints64
    levels: Ints64
    counts: Ints64


def empty_table(num_rows: int, num_columns: int) -> Ints32:
    """Begins with a line of the processor's cache, so that a row of 16 columns is one line and not parts of two."""
    room = np.zeros(num_rows * num_columns + LINE_COLUMNS, np.int32)
    start = -(room.ctypes.data // 4) % LINE_COLUMNS
    return room[start : start + num_rows * num_columns].reshape(num_rows, num_columns)


def empty_tables(num_levels: int, num_rows: int) -> Tables:
    """`num_rows` of each kind, at least one."""
    levels = np.zeros((num_levels, NUM_LEVEL_COLUMNS), np.int64)
    for first in (QUEUES, QUEUES + 3, NOTES, *range(LISTS, LISTS + 12, 3)):
        levels[:, first : first + 2] = NONE
    levels[:, QUOTA] = NO_QUOTA
    for first in (TENANT_QUEUES, TENANT_QUEUES + 3):
        levels[:, TENANTS:].reshape(num_levels, MAX_TENANTS, NUM_TENANT_COLUMNS)[:, :, first : first + 2] = NONE
    counts = np.zeros(NUM_COUNTS, np.int64)
    counts[[NODES + 1, COPIES + 1, MEMORIES + 1]] = NONE
    return Tables(
        empty_table(num_rows, COPY + 2 * num_levels),
        empty_table(num_rows, NUM_COPY_COLUMNS),
        empty_table(num_rows, NUM_MEMORY_COLUMNS),
        np.zeros(2 * num_rows, np.int64),
        levels,
        counts,
    )


@part
def wide(number: Any) -> Any:
    """As an int64."""
    return np.int64(number)


@part
def at(table: Ints32, row: int, column: int) -> Any:
    """As an int64, so that nothing is compiled for two widths; rows are never negative."""
    return np.int64(table[np.uintp(row), np.uintp(column)])


@part
def take_row(table: Ints32, counts: Ints64, pool: int) -> int:
    """There must be one: `Books.reserve`."""
    row = counts[pool + 1]
    if row == NONE:
        row = counts[pool]
        counts[pool] += 1
        return row
    counts[pool + 1] = at(table, row, 0)
    counts[pool + 2] -= 1
    return row


@part
def num_rows_left(table: Ints32, counts: Ints64, pool: int) -> int:
    return len(table) - counts[pool] + counts[pool + 2]


@part
def give_row(table: Ints32, counts: Ints64, pool: int, row: int) -> None:
    table[row, 0] = counts[pool + 1]
    counts[pool + 1] = row
    counts[pool + 2] += 1


@part
def append(table: Ints32, links: int, levels: Ints64, rank: int, first: int, row: int) -> None:
    """As the newest of a list: `first` is the list's first column, `links` that of the row's two neighbours."""
    newest = levels[rank, first + 1]
    table[row, links] = newest
    table[row, links + 1] = NONE
    if newest == NONE:
        levels[rank, first] = row
    else:
        table[newest, links + 1] = row
    levels[rank, first + 1] = row
    levels[rank, first + 2] += 1


@part
def put_first(table: Ints32, links: int, levels: Ints64, rank: int, first: int, row: int) -> None:
    """As the oldest of a list."""
    oldest = levels[rank, first]
    table[row, links] = NONE
    table[row, links + 1] = oldest
    if oldest == NONE:
        levels[rank, first + 1] = row
    else:
        table[oldest, links] = row
    levels[rank, first] = row
    levels[rank, first + 2] += 1


@part
def unlink(table: Ints32, links: int, levels: Ints64, rank: int, first: int, row: int) -> None:
    before, after = at(table, row, links), at(table, row, links + 1)
    if before == NONE:
        levels[rank, first] = after
    else:
        table[before, links + 1] = after
    if after == NONE:
        levels[rank, first + 1] = before
    else:
        table[after, links] = before
    levels[rank, first + 2] -= 1
