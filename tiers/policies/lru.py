"""Least recently used: one list. Children are always older than their parents, so the oldest block is a leaf.

Compiled over the tables. What is held is not in the list.
"""

from tiers.books.compiled import part
from tiers.books.family import copy_at
from tiers.books.layout import (
    BEFORE,
    ENTERED,
    FLAGS,
    HELD,
    NODE,
    NONE,
    NUM_HELD,
    PARENT,
    QUEUED,
    QUEUES,
    RANK,
    SIZES,
    Tables,
    append,
    at,
    unlink,
)


@part
def touch(t: Tables, copy: int) -> None:
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if flags & ENTERED == 0:
        t.levels[rank, SIZES] += 1
    elif flags & HELD:
        t.levels[rank, NUM_HELD] -= 1
    else:
        unlink(t.copies, BEFORE, t.levels, rank, QUEUES, copy)
    t.copies[copy, FLAGS] = (flags | ENTERED | QUEUED) & ~HELD
    append(t.copies, BEFORE, t.levels, rank, QUEUES, copy)


@part
def enter(t: Tables, copy: int) -> None:
    """As the newest, but for blocks before it that are here, too (only after a change of mode)."""
    rank = at(t.copies, copy, RANK)
    while copy != NONE:
        touch(t, copy)
        parent = at(t.nodes, at(t.copies, copy, NODE), PARENT)
        copy = NONE if parent == NONE else copy_at(t, parent, rank)
        if copy != NONE and at(t.copies, copy, FLAGS) & QUEUED == 0:
            copy = NONE


@part
def hold(t: Tables, copy: int) -> None:
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if flags & QUEUED:
        unlink(t.copies, BEFORE, t.levels, rank, QUEUES, copy)
        t.copies[copy, FLAGS] = (flags | HELD) & ~QUEUED
        t.levels[rank, NUM_HELD] += 1


@part
def remove(t: Tables, copy: int) -> None:
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if flags & ENTERED == 0:
        return
    if flags & QUEUED:
        unlink(t.copies, BEFORE, t.levels, rank, QUEUES, copy)
    else:
        t.levels[rank, NUM_HELD] -= 1
    t.levels[rank, SIZES] -= 1
    t.copies[copy, FLAGS] = flags & ~(ENTERED | QUEUED | HELD)


@part
def victim(t: Tables, rank: int) -> int:
    return t.levels[rank, QUEUES]
