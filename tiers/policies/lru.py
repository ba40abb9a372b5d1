"""Least recently used: one list. Children are always older than their parents, so the oldest block is a leaf; so it is
among those of one tenant.

Compiled over the tables. What is held is not in the list.
"""

from tiers.books.compiled import part
from tiers.books.family import copy_at
from tiers.books.layout import (
    ENTERED,
    FLAGS,
    HELD,
    NODE,
    NONE,
    NUM_HELD,
    PARENT,
    QUEUED,
    RANK,
    SIZES,
    Tables,
    at,
    number,
)
from tiers.policies.places import join, queue_of, take_out

ONLY = number(0)


@part
def touch(t: Tables, copy: int) -> None:
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if flags & ENTERED == 0:
        t.levels[rank, SIZES] += 1
    elif flags & HELD:
        t.levels[rank, NUM_HELD] -= 1
    else:
        take_out(t, copy, rank, ONLY)
    t.copies[copy, FLAGS] = (at(t.copies, copy, FLAGS) | ENTERED) & ~HELD
    join(t, copy, rank, ONLY)


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
        take_out(t, copy, rank, ONLY)
        t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | HELD
        t.levels[rank, NUM_HELD] += 1


@part
def remove(t: Tables, copy: int) -> None:
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if flags & ENTERED == 0:
        return
    if flags & QUEUED:
        take_out(t, copy, rank, ONLY)
    else:
        t.levels[rank, NUM_HELD] -= 1
    t.levels[rank, SIZES] -= 1
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) & ~(ENTERED | HELD)


@part
def victim(t: Tables, rank: int, tenant: int) -> int:
    return t.levels[rank, queue_of(tenant, ONLY)]
