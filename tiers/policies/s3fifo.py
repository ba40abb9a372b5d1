"""S3-FIFO (Yang et al., "FIFO Queues are All You Need for Cache Eviction", SOSP '23), closed under prefix.

New blocks pass a small queue, a tenth of the tier; those used twice there move on to the main queue, a clock with two
bits. Blocks that left the small queue are remembered by key alone and go straight to the main queue when they return,
as do those that were read here and moved up. One block leaves at a time: where the paper evicts from the main queue and
at once from the small one, too, the second waits until it has to make room. Compiled over the tables.
"""

from tiers.books.compiled import part
from tiers.books.layout import (
    CAPACITY,
    DROPPED,
    ENTERED,
    EVICTED,
    FLAGS,
    NODE,
    NONE,
    NUM_USES,
    RANK,
    SIZES,
    Tables,
    at,
    number,
    numbers,
)
from tiers.books.memories import forget, forget_oldest, length, recall, remember
from tiers.policies.queues import add, drop, let_go, move, oldest

SMALL, MAIN = numbers(0, 2)
GHOSTS = number(0)
MAX_USES = 3
USES_FOR_MAIN = 2
FRESH = number(0)


@part
def touch(t: Tables, copy: int) -> None:
    if at(t.copies, copy, FLAGS) & ENTERED:
        t.copies[copy, NUM_USES] = min(at(t.copies, copy, NUM_USES) + 1, MAX_USES)
        let_go(t, copy)
        return
    ghost = recall(t, at(t.copies, copy, NODE), at(t.copies, copy, RANK), GHOSTS)
    add(t, copy, SMALL if ghost == NONE else MAIN)
    if ghost != NONE:
        forget(t, ghost)


@part
def remove(t: Tables, copy: int, leave: int) -> None:
    queue = drop(t, copy)
    if queue == NONE or leave == DROPPED or (leave == EVICTED and queue == MAIN):
        return
    node, rank = at(t.copies, copy, NODE), at(t.copies, copy, RANK)
    ghost = recall(t, node, rank, GHOSTS)
    if ghost == NONE:
        remember(t, node, rank, GHOSTS, FRESH)
    trim(t, rank, node)


@part
def victim(t: Tables, rank: int, tenant: int) -> int:
    """Of one tenant's blocks: from the queue that has to give way for all."""
    small, main = t.levels[rank, SIZES], t.levels[rank, SIZES + 1]
    if small * 10 >= small + main:
        copy = _from_small(t, rank, tenant)
        return _from_main(t, rank, tenant) if copy == NONE else copy
    copy = _from_main(t, rank, tenant)
    return _from_small(t, rank, tenant) if copy == NONE else copy


@part
def max_ghosts(t: Tables, rank: int) -> int:
    """At most nine for ten blocks that the tier may hold."""
    return t.levels[rank, CAPACITY] * 9 // 10


@part
def trim(t: Tables, rank: int, keep: int) -> None:
    while length(t, rank, GHOSTS) > max_ghosts(t, rank):
        forget_oldest(t, rank, GHOSTS, keep)


@part
def _from_small(t: Tables, rank: int, tenant: int) -> int:
    copy = oldest(t, rank, SMALL, tenant)
    while copy != NONE and at(t.copies, copy, NUM_USES) >= USES_FOR_MAIN:
        _to_main(t, copy, FRESH)
        small, main = t.levels[rank, SIZES], t.levels[rank, SIZES + 1]
        if main * 10 > 9 * (small + main):
            other = _from_main(t, rank, tenant)
            if other != NONE:
                return other
        copy = oldest(t, rank, SMALL, tenant)
    return copy


@part
def _from_main(t: Tables, rank: int, tenant: int) -> int:
    copy = oldest(t, rank, MAIN, tenant)
    while copy != NONE and at(t.copies, copy, NUM_USES) > 0:
        _to_main(t, copy, at(t.copies, copy, NUM_USES) - 1)
        copy = oldest(t, rank, MAIN, tenant)
    return copy


@part
def _to_main(t: Tables, copy: int, num_uses: int) -> None:
    move(t, copy, MAIN)
    t.copies[copy, NUM_USES] = num_uses
