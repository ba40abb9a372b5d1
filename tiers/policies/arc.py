"""ARC (Megiddo & Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST '03), closed under prefix.

Blocks used once lately and blocks used more often are two LRU lists (T1, T2), each with a list of keys that left it
(B1, B2). A key that returns from B1 says that the first should be larger, one from B2 that the second should; the
target (p) follows. The paper makes room for a block whose key it knows: `victim` takes its node. A block that was read
here and moved up joins B2, so that it returns to T2; as it was no miss, it moves no target. With a tier of c blocks T1
and B1 have at most c, all four lists 2 c. Compiled over the tables.
"""

import numpy as np

from tiers.books.compiled import part
from tiers.books.layout import (
    CAPACITY,
    DROPPED,
    ENTERED,
    FLAGS,
    HAS_MOVED,
    NODE,
    NONE,
    PROMOTED,
    RANK,
    SIZES,
    TARGET,
    Tables,
    at,
    numbers,
    wide,
)
from tiers.books.memories import forget, forget_oldest, length, recall, remember
from tiers.policies.queues import add, drop, move, oldest

ONCE, OFTEN = numbers(0, 2)


@part
def touch(t: Tables, copy: int) -> None:
    if at(t.copies, copy, FLAGS) & ENTERED:
        move(t, copy, OFTEN)
        return
    node, rank = at(t.copies, copy, NODE), at(t.copies, copy, RANK)
    _adapt(t, rank, node)
    queue = ONCE
    for number in range(2):
        ghost = recall(t, node, rank, wide(number))
        if ghost != NONE:
            forget(t, ghost)
            queue = OFTEN
    add(t, copy, queue)
    trim(t, rank, NONE)


@part
def remove(t: Tables, copy: int, leave: int) -> None:
    queue = drop(t, copy)
    if queue == NONE or leave == DROPPED:
        return
    node, rank = at(t.copies, copy, NODE), at(t.copies, copy, RANK)
    number = OFTEN if leave == PROMOTED else queue
    ghost = recall(t, node, rank, number)
    if ghost == NONE:
        remember(t, node, rank, number, wide(leave == PROMOTED))
    else:
        t.memories[ghost, HAS_MOVED] = wide(leave == PROMOTED)
    trim(t, rank, node)


@part
def victim(t: Tables, rank: int, incoming: int, tenant: int) -> int:
    """`incoming` is the node for which it makes room, or NONE. A tenant's is from the list that gives way for all."""
    target = t.levels.view(np.float64)
    if incoming != NONE:
        _adapt(t, rank, incoming)
    num_once = t.levels[rank, SIZES + ONCE]
    is_even = num_once == target[rank, TARGET] and incoming != NONE and recall(t, incoming, rank, OFTEN) != NONE
    first = ONCE if num_once > target[rank, TARGET] or is_even else OFTEN
    copy = oldest(t, rank, first, tenant)
    return oldest(t, rank, 1 - first, tenant) if copy == NONE else copy


@part
def trim(t: Tables, rank: int, keep: int) -> None:
    capacity = t.levels[rank, CAPACITY]
    while length(t, rank, ONCE) > 0 and t.levels[rank, SIZES + ONCE] + length(t, rank, ONCE) > capacity:
        forget_oldest(t, rank, ONCE, keep)
    while length(t, rank, OFTEN) > 0 and num_known(t, rank) > 2 * capacity:
        forget_oldest(t, rank, OFTEN, keep)


@part
def num_known(t: Tables, rank: int) -> int:
    """Blocks of all four lists."""
    num_here = t.levels[rank, SIZES + ONCE] + t.levels[rank, SIZES + OFTEN]
    return num_here + length(t, rank, ONCE) + length(t, rank, OFTEN)


@part
def limit_target(t: Tables, rank: int) -> None:
    target = t.levels.view(np.float64)
    target[rank, TARGET] = min(target[rank, TARGET], np.float64(t.levels[rank, CAPACITY]))


@part
def _adapt(t: Tables, rank: int, node: int) -> None:
    """Once for each time that a key is remembered."""
    target = t.levels.view(np.float64)
    num_once, num_often = length(t, rank, ONCE), length(t, rank, OFTEN)
    ghost = recall(t, node, rank, ONCE)
    if ghost != NONE and at(t.memories, ghost, HAS_MOVED) == 0:
        t.memories[ghost, HAS_MOVED] = 1
        target[rank, TARGET] = min(target[rank, TARGET] + max(1.0, num_often / num_once), t.levels[rank, CAPACITY])
        return
    ghost = recall(t, node, rank, OFTEN)
    if ghost != NONE and at(t.memories, ghost, HAS_MOVED) == 0:
        t.memories[ghost, HAS_MOVED] = 1
        target[rank, TARGET] = max(target[rank, TARGET] - max(1.0, num_once / num_often), 0.0)
