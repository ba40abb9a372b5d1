"""Two queues of a tier's blocks, closed under prefix: what S3-FIFO and ARC are made of. Knows nothing about either.

A block that comes to the old end of its queue while it is read, or while blocks that follow it are in the tier, is set
aside and comes back to that end as soon as it may leave. Each time costs one hold or one block that followed, so the
search for a victim takes constant time, amortised. Compiled over the tables.
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
    NUM_FOLLOWERS,
    NUM_HELD,
    NUM_USES,
    PARENT,
    QUEUE,
    QUEUED,
    QUEUES,
    RANK,
    SIZES,
    Tables,
    append,
    at,
    put_first,
    unlink,
)


@part
def add(t: Tables, copy: int, queue: int) -> None:
    """As the newest of the queue."""
    rank = at(t.copies, copy, RANK)
    t.copies[copy, QUEUE] = queue
    t.copies[copy, NUM_USES] = 0
    t.levels[rank, SIZES + queue] += 1
    _append(t, copy, rank, queue)
    parent = at(t.nodes, at(t.copies, copy, NODE), PARENT)
    if parent != NONE:
        t.nodes[parent, NUM_FOLLOWERS + 2 * rank] += 1


@part
def move(t: Tables, copy: int, queue: int) -> None:
    """To the new end of a queue, perhaps of its own; nobody reads it now."""
    rank = at(t.copies, copy, RANK)
    _unqueue(t, copy, rank)
    t.levels[rank, SIZES + at(t.copies, copy, QUEUE)] -= 1
    t.levels[rank, SIZES + queue] += 1
    t.copies[copy, QUEUE] = queue
    _free_of_reads(t, copy, rank)
    _append(t, copy, rank, queue)


@part
def hold(t: Tables, copy: int) -> None:
    flags = at(t.copies, copy, FLAGS)
    if flags & ENTERED and flags & HELD == 0:
        t.copies[copy, FLAGS] = flags | HELD
        t.levels[at(t.copies, copy, RANK), NUM_HELD] += 1


@part
def let_go(t: Tables, copy: int) -> None:
    """Where it is; nobody reads it now."""
    rank = at(t.copies, copy, RANK)
    _free_of_reads(t, copy, rank)
    if at(t.copies, copy, FLAGS) & QUEUED == 0 and not _is_followed(t, copy, rank):
        _bring_back(t, copy, rank)


@part
def drop(t: Tables, copy: int) -> int:
    """Out of its queue, whose number it returns; NONE if it was in none."""
    if at(t.copies, copy, FLAGS) & ENTERED == 0:
        return NONE
    rank, queue, node = at(t.copies, copy, RANK), at(t.copies, copy, QUEUE), at(t.copies, copy, NODE)
    _unqueue(t, copy, rank)
    t.levels[rank, SIZES + queue] -= 1
    _free_of_reads(t, copy, rank)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) & ~ENTERED
    parent = at(t.nodes, node, PARENT)
    if parent != NONE:
        _unfollow(t, parent, rank)
    return queue


@part
def oldest(t: Tables, rank: int, queue: int) -> int:
    """The oldest block of the queue that may leave, or NONE."""
    copy = t.levels[rank, QUEUES + 3 * queue]
    while copy != NONE and (at(t.copies, copy, FLAGS) & HELD or _is_followed(t, copy, rank)):
        _unqueue(t, copy, rank)
        copy = t.levels[rank, QUEUES + 3 * queue]
    return copy


@part
def _is_followed(t: Tables, copy: int, rank: int) -> bool:
    return at(t.nodes, at(t.copies, copy, NODE), NUM_FOLLOWERS + 2 * rank) > 0


@part
def _append(t: Tables, copy: int, rank: int, queue: int) -> None:
    append(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * queue, copy)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | ENTERED | QUEUED


@part
def _unqueue(t: Tables, copy: int, rank: int) -> None:
    """Out of its queue if it is in it."""
    flags = at(t.copies, copy, FLAGS)
    if flags & QUEUED:
        unlink(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * at(t.copies, copy, QUEUE), copy)
        t.copies[copy, FLAGS] = flags & ~QUEUED


@part
def _free_of_reads(t: Tables, copy: int, rank: int) -> None:
    flags = at(t.copies, copy, FLAGS)
    if flags & HELD:
        t.copies[copy, FLAGS] = flags & ~HELD
        t.levels[rank, NUM_HELD] -= 1


@part
def _unfollow(t: Tables, parent: int, rank: int) -> None:
    t.nodes[parent, NUM_FOLLOWERS + 2 * rank] -= 1
    before = copy_at(t, parent, rank)
    if before == NONE or at(t.nodes, parent, NUM_FOLLOWERS + 2 * rank) > 0:
        return
    if at(t.copies, before, FLAGS) & (ENTERED | QUEUED | HELD) == ENTERED:
        _bring_back(t, before, rank)


@part
def _bring_back(t: Tables, copy: int, rank: int) -> None:
    put_first(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * at(t.copies, copy, QUEUE), copy)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | QUEUED
