"""Two queues of a tier's blocks, closed under prefix: what S3-FIFO and ARC are made of. Knows nothing about either.

A block that comes to the old end of its queue while it is read, or while blocks that follow it are in the tier, is set
aside and comes back to that end as soon as it may leave. Each time costs one hold or one block that followed, so the
search for a victim takes constant time, amortised. The same holds in the queues of one tenant's blocks, each by itself.
Compiled over the tables.
"""

from tiers.books.compiled import part
from tiers.books.family import copy_at
from tiers.books.layout import (
    ENTERED,
    FLAGS,
    HELD,
    NODE,
    NONE,
    NUM_FOLLOWERS,
    NUM_HELD,
    NUM_USES,
    OWN,
    PARENT,
    QUEUE,
    QUEUED,
    RANK,
    SIZES,
    Tables,
    at,
)
from tiers.policies.places import bring_back, join, queue_of, set_aside, take_out


@part
def add(t: Tables, copy: int, queue: int) -> None:
    """As the newest of the queue."""
    rank = at(t.copies, copy, RANK)
    t.copies[copy, QUEUE] = queue
    t.copies[copy, NUM_USES] = 0
    t.levels[rank, SIZES + queue] += 1
    join(t, copy, rank, queue)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | ENTERED
    parent = at(t.nodes, at(t.copies, copy, NODE), PARENT)
    if parent != NONE:
        t.nodes[parent, NUM_FOLLOWERS + 2 * rank] += 1


@part
def move(t: Tables, copy: int, queue: int) -> None:
    """To the new end of a queue, perhaps of its own; nobody reads it now."""
    rank = at(t.copies, copy, RANK)
    take_out(t, copy, rank, at(t.copies, copy, QUEUE))
    t.levels[rank, SIZES + at(t.copies, copy, QUEUE)] -= 1
    t.levels[rank, SIZES + queue] += 1
    t.copies[copy, QUEUE] = queue
    _free_of_reads(t, copy, rank)
    join(t, copy, rank, queue)


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
    if _is_aside(t, copy) and not _is_followed(t, copy, rank):
        bring_back(t, copy, rank, at(t.copies, copy, QUEUE))


@part
def drop(t: Tables, copy: int) -> int:
    """Out of its queue, whose number it returns; NONE if it was in none."""
    if at(t.copies, copy, FLAGS) & ENTERED == 0:
        return NONE
    rank, queue, node = at(t.copies, copy, RANK), at(t.copies, copy, QUEUE), at(t.copies, copy, NODE)
    take_out(t, copy, rank, queue)
    t.levels[rank, SIZES + queue] -= 1
    _free_of_reads(t, copy, rank)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) & ~ENTERED
    parent = at(t.nodes, node, PARENT)
    if parent != NONE:
        _unfollow(t, parent, rank)
    return queue


@part
def oldest(t: Tables, rank: int, queue: int, tenant: int) -> int:
    """The oldest block of the queue that may leave, of that tenant or, for NONE, of all; NONE if there is none."""
    first = queue_of(tenant, queue)
    copy = t.levels[rank, first]
    while copy != NONE and (at(t.copies, copy, FLAGS) & HELD or _is_followed(t, copy, rank)):
        set_aside(t, copy, rank, queue, tenant)
        copy = t.levels[rank, first]
    return copy


@part
def _is_followed(t: Tables, copy: int, rank: int) -> bool:
    return at(t.nodes, at(t.copies, copy, NODE), NUM_FOLLOWERS + 2 * rank) > 0


@part
def _is_aside(t: Tables, copy: int) -> bool:
    """In its tier's queue, its tenant's or both."""
    return at(t.copies, copy, FLAGS) & (QUEUED | OWN) != QUEUED | OWN


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
    if at(t.copies, before, FLAGS) & (ENTERED | HELD) == ENTERED and _is_aside(t, before):
        bring_back(t, before, rank, at(t.copies, before, QUEUE))
