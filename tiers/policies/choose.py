"""Hands each question about a tier's order to the policy that it has now. Compiled over the tables.

Also notes what was used in a tier that others share, so that they can be told, and says which tenant's blocks leave
where a tier has a quota.
"""

from tiers.books.compiled import part
from tiers.books.layout import (
    ARC,
    COPIES,
    ENTERED,
    FLAGS,
    HELD,
    KEEPS_NOTES,
    LIVE,
    LRU,
    NONE,
    NOTED,
    NOTED_BEFORE,
    NOTES,
    NUM_FOLLOWERS,
    NUM_HELD,
    NUM_OVER,
    NUM_TENANTS,
    OWN,
    POLICY,
    QUEUED,
    QUEUES,
    RANK,
    S3FIFO,
    SIZES,
    TARGET,
    Tables,
    append,
    at,
    unlink,
    wide,
)
from tiers.books.memories import forget_all
from tiers.books.shares import count_over, is_beyond
from tiers.policies import arc, lru, places, queues, s3fifo


@part
def touch(t: Tables, copy: int) -> None:
    """The block was used, or is new here, and nobody reads it now."""
    policy = t.levels[at(t.copies, copy, RANK), POLICY]
    if policy == LRU:
        lru.touch(t, copy)
    elif policy == S3FIFO:
        s3fifo.touch(t, copy)
    else:
        arc.touch(t, copy)


@part
def enter(t: Tables, copy: int) -> None:
    """The block came down from a faster tier, without having been used, and nobody reads it."""
    if t.levels[at(t.copies, copy, RANK), POLICY] == LRU:
        lru.enter(t, copy)
    else:
        touch(t, copy)


@part
def hold(t: Tables, copy: int) -> None:
    """The block is being read: it stays until it is touched."""
    if t.levels[at(t.copies, copy, RANK), POLICY] == LRU:
        lru.hold(t, copy)
    else:
        queues.hold(t, copy)


@part
def remove(t: Tables, copy: int, leave: int) -> None:
    """The block has left the tier; one that was not there, or is held, too. Whoever calls tidies its node."""
    rank = at(t.copies, copy, RANK)
    policy = t.levels[rank, POLICY]
    if policy == LRU:
        lru.remove(t, copy)
    elif policy == S3FIFO:
        s3fifo.remove(t, copy, leave)
    else:
        arc.remove(t, copy, leave)
    unnote(t, copy, rank)


@part
def victim(t: Tables, rank: int, incoming: int, tenant: int) -> int:
    """The block to leave next, to make room for the node `incoming` where that is known; NONE if none may leave.

    Of that tenant's blocks, where the tier has a quota, or of all: NONE. Asked again before anything else has happened,
    it says the same.
    """
    policy = t.levels[rank, POLICY]
    if policy == LRU:
        return lru.victim(t, rank, tenant)
    if policy == S3FIFO:
        return s3fifo.victim(t, rank, tenant)
    return arc.victim(t, rank, incoming, tenant)


@part
def victim_for(t: Tables, rank: int, incoming: int, tenant: int, num_coming: int) -> int:
    """Makes room for blocks of the tenant, so many of which do not count yet.

    Where it would have more than it may, its own leave, and those of others only if none of its own can.
    """
    if is_beyond(t, rank, tenant, num_coming):
        copy = victim(t, rank, incoming, tenant)
        if copy != NONE:
            return copy
    return victim(t, rank, incoming, NONE)


@part
def surplus(t: Tables, rank: int) -> int:
    """A block that may leave of a tenant that has more than it may, or NONE."""
    if t.levels[rank, NUM_OVER] > 0:
        for number in range(t.counts[NUM_TENANTS]):
            tenant = wide(number)
            if is_beyond(t, rank, tenant, wide(0)):
                copy = victim(t, rank, NONE, tenant)
                if copy != NONE:
                    return copy
    return wide(NONE)


@part
def is_idle(t: Tables, copy: int) -> bool:
    """Its policy knows it, and nobody reads it."""
    return at(t.copies, copy, FLAGS) & (ENTERED | HELD) == ENTERED


@part
def resized(t: Tables, rank: int, quota: int) -> None:
    """`quota` is how many blocks each tenant may have now."""
    places.limit(t, rank, quota)
    count_over(t, rank)
    if t.levels[rank, POLICY] == S3FIFO:
        s3fifo.trim(t, rank, NONE)
    elif t.levels[rank, POLICY] == ARC:
        arc.limit_target(t, rank)
        arc.trim(t, rank, NONE)


@part
def replace(t: Tables, rank: int, policy: int) -> None:
    """All blocks are new to another policy, those that are read, too; what the old one remembers is forgotten."""
    for number in range(2):
        forget_all(t, rank, wide(number), NONE)
    for copy in range(t.counts[COPIES]):
        flags = at(t.copies, copy, FLAGS)
        if flags & LIVE and at(t.copies, copy, RANK) == rank:
            t.copies[copy, FLAGS] = flags & ~(ENTERED | HELD | QUEUED | OWN)
    places.empty_own(t, rank)
    t.nodes[:, NUM_FOLLOWERS + 2 * rank] = 0
    for first in (QUEUES, QUEUES + 3):
        t.levels[rank, first] = NONE
        t.levels[rank, first + 1] = NONE
        t.levels[rank, first + 2] = 0
    for column in (SIZES, SIZES + 1, NUM_HELD, TARGET):
        t.levels[rank, column] = 0
    t.levels[rank, POLICY] = policy


@part
def note(t: Tables, copy: int) -> None:
    """As what was used last, where the tier keeps notes."""
    rank, flags = at(t.copies, copy, RANK), at(t.copies, copy, FLAGS)
    if t.levels[rank, KEEPS_NOTES]:
        unnote(t, copy, rank)
        append(t.copies, NOTED_BEFORE, t.levels, rank, NOTES, copy)
        t.copies[copy, FLAGS] = flags | NOTED


@part
def unnote(t: Tables, copy: int, rank: int) -> None:
    flags = at(t.copies, copy, FLAGS)
    if flags & NOTED:
        unlink(t.copies, NOTED_BEFORE, t.levels, rank, NOTES, copy)
        t.copies[copy, FLAGS] = flags & ~NOTED
