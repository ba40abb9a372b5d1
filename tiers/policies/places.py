"""A block's place in its tier's queue and, where the tier has a quota, in its tenant's: the same order, that tenant's
blocks alone, so that its oldest is found at once. Compiled over the tables; knows nothing about who leaves when.
"""

from tiers.books.compiled import part
from tiers.books.layout import (
    AFTER,
    BEFORE,
    COPIES,
    FLAGS,
    LIVE,
    NONE,
    NUM_TENANTS,
    OWN,
    OWN_BEFORE,
    QUEUED,
    QUEUES,
    QUOTA,
    RANK,
    TENANT_QUEUES,
    Tables,
    append,
    at,
    put_first,
    unlink,
    wide,
)
from tiers.books.shares import has_quota, place_of, tenant_of


@part
def queue_of(tenant: int, queue: int) -> int:
    """Its first column; of NONE the tier's."""
    return QUEUES + 3 * queue if tenant == NONE else place_of(tenant) + TENANT_QUEUES + 3 * queue


@part
def join(t: Tables, copy: int, rank: int, queue: int) -> None:
    """As the newest; it is in neither."""
    append(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * queue, copy)
    if has_quota(t, rank):
        append(t.copies, OWN_BEFORE, t.levels, rank, queue_of(tenant_of(t, copy), queue), copy)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | QUEUED | OWN


@part
def take_out(t: Tables, copy: int, rank: int, queue: int) -> None:
    """It may be in one of them, both or none."""
    flags = at(t.copies, copy, FLAGS)
    if flags & QUEUED:
        unlink(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * queue, copy)
    if flags & OWN and has_quota(t, rank):
        unlink(t.copies, OWN_BEFORE, t.levels, rank, queue_of(tenant_of(t, copy), queue), copy)
    t.copies[copy, FLAGS] = flags & ~(QUEUED | OWN)


@part
def set_aside(t: Tables, copy: int, rank: int, queue: int, tenant: int) -> None:
    """Out of the one queue, its tenant's or, for NONE, the tier's; in the other it keeps its place."""
    is_own = tenant != NONE
    unlink(t.copies, OWN_BEFORE if is_own else BEFORE, t.levels, rank, queue_of(tenant, queue), copy)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) & ~(OWN if is_own else QUEUED)


@part
def bring_back(t: Tables, copy: int, rank: int, queue: int) -> None:
    """As the oldest of those that it is not in."""
    flags = at(t.copies, copy, FLAGS)
    if flags & QUEUED == 0:
        put_first(t.copies, BEFORE, t.levels, rank, QUEUES + 3 * queue, copy)
    if flags & OWN == 0 and has_quota(t, rank):
        put_first(t.copies, OWN_BEFORE, t.levels, rank, queue_of(tenant_of(t, copy), queue), copy)
    t.copies[copy, FLAGS] = flags | QUEUED | OWN


@part
def limit(t: Tables, rank: int, quota: int) -> None:
    """Blocks that each tenant may have from now on. The first quota walks everything."""
    is_first = quota < t.levels[rank, QUOTA] and not has_quota(t, rank)
    t.levels[rank, QUOTA] = quota
    if is_first:
        empty_own(t, rank)
        for queue in range(2):
            copy = t.levels[rank, QUEUES + 3 * queue]
            while copy != NONE:
                own = queue_of(tenant_of(t, copy), wide(queue))
                append(t.copies, OWN_BEFORE, t.levels, rank, own, copy)
                t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) | OWN
                copy = at(t.copies, copy, AFTER)


@part
def empty_own(t: Tables, rank: int) -> None:
    """No block of the tier is in a tenant's queue."""
    for copy in range(t.counts[COPIES]):
        flags = at(t.copies, copy, FLAGS)
        if flags & LIVE and at(t.copies, copy, RANK) == rank:
            t.copies[copy, FLAGS] = flags & ~OWN
    for tenant in range(t.counts[NUM_TENANTS]):
        for queue in range(2):
            first = queue_of(wide(tenant), wide(queue))
            t.levels[rank, first] = NONE
            t.levels[rank, first + 1] = NONE
            t.levels[rank, first + 2] = 0
