"""What tiers remember of blocks that they no longer have, in lists of bounded length: an eviction policy's ghosts, and
what was dropped and may have to be computed again.

Knows nothing about what a memory is good for.
"""

from tiers.books.compiled import part
from tiers.books.family import forgotten
from tiers.books.layout import (
    DROPS,
    HAS_MOVED,
    LIST,
    LISTS,
    MAX_DROPS,
    MEMORIES,
    MEMORY,
    NEW_DROPS,
    NEXT,
    NODE,
    NONE,
    NUM_MISSED,
    OLDER,
    RANK,
    Tables,
    append,
    at,
    give_row,
    take_row,
    unlink,
)


@part
def length(t: Tables, rank: int, number: int) -> int:
    return t.levels[rank, LISTS + 3 * number + 2]


@part
def recall(t: Tables, node: int, rank: int, number: int) -> int:
    """What the tier's list has of the block, or NONE."""
    memory = at(t.nodes, node, MEMORY)
    while memory != NONE:
        if at(t.memories, memory, RANK) == rank and at(t.memories, memory, LIST) == number:
            return memory
        memory = at(t.memories, memory, NEXT)
    return NONE


@part
def remember(t: Tables, node: int, rank: int, number: int, has_moved: int) -> None:
    """As the newest of the tier's list; it must not be there."""
    memory = take_row(t.memories, t.counts, MEMORIES)
    t.memories[memory, NODE] = node
    t.memories[memory, RANK] = rank
    t.memories[memory, LIST] = number
    t.memories[memory, HAS_MOVED] = has_moved
    t.memories[memory, NEXT] = at(t.nodes, node, MEMORY)
    t.nodes[node, MEMORY] = memory
    append(t.memories, OLDER, t.levels, rank, LISTS + 3 * number, memory)


@part
def forget(t: Tables, memory: int) -> None:
    """The block itself may have to be tidied after that."""
    node, rank, number = at(t.memories, memory, NODE), at(t.memories, memory, RANK), at(t.memories, memory, LIST)
    unlink(t.memories, OLDER, t.levels, rank, LISTS + 3 * number, memory)
    after = at(t.memories, memory, NEXT)
    other = at(t.nodes, node, MEMORY)
    if other == memory:
        t.nodes[node, MEMORY] = after
    else:
        while at(t.memories, other, NEXT) != memory:
            other = at(t.memories, other, NEXT)
        t.memories[other, NEXT] = after
    give_row(t.memories, t.counts, MEMORIES, memory)


@part
def forget_oldest(t: Tables, rank: int, number: int, keep: int) -> None:
    """`keep` is a node that its caller will tidy."""
    memory = t.levels[rank, LISTS + 3 * number]
    node = at(t.memories, memory, NODE)
    forget(t, memory)
    if node != keep:
        forgotten(t, node)


@part
def forget_all(t: Tables, rank: int, number: int, keep: int) -> None:
    while length(t, rank, number) > 0:
        forget_oldest(t, rank, number, keep)


# -- what was dropped: two generations, the newer one of at most MAX_DROPS ---------------------------------------------
@part
def dropped(t: Tables, rank: int, node: int) -> None:
    """The block was evicted, and no tier has it any more. Whoever calls tidies it."""
    new = t.levels[rank, NEW_DROPS]
    if length(t, rank, DROPS + new) >= t.levels[rank, MAX_DROPS]:
        if t.levels[rank, MAX_DROPS] == 0:
            return
        new = 1 - new
        forget_all(t, rank, DROPS + new, node)
        t.levels[rank, NEW_DROPS] = new
    if recall(t, node, rank, DROPS + new) == NONE:
        before = recall(t, node, rank, DROPS + 1 - new)
        if before != NONE:
            forget(t, before)
        remember(t, node, rank, DROPS + new, NONE)


@part
def computed(t: Tables, node: int) -> None:
    """The block comes from the model: tiers that have dropped it not long ago have missed it."""
    memory = at(t.nodes, node, MEMORY)
    while memory != NONE:
        after = at(t.memories, memory, NEXT)
        if at(t.memories, memory, LIST) >= DROPS:
            t.levels[at(t.memories, memory, RANK), NUM_MISSED] += 1
            forget(t, memory)
        memory = after


@part
def limit_drops(t: Tables, rank: int, max_drops: int) -> None:
    t.levels[rank, MAX_DROPS] = max_drops
    if max(length(t, rank, DROPS), length(t, rank, DROPS + 1)) > max_drops:
        forget_all(t, rank, DROPS, NONE)
        forget_all(t, rank, DROPS + 1, NONE)
