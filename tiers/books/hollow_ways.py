"""The ways between tiers where blocks are keys alone, compiled: what `tiers/ladder.py` decides, with nothing to move.

A block is in a tier as soon as that is decided. Knows nothing about requests but which of their blocks are read.
"""

from tiers.books import bitmap
from tiers.books.compiled import Ints64, Words, part
from tiers.books.family import copy_at, fastest, tidy
from tiers.books.layout import (
    CAPACITY,
    CHILD,
    DROPPED,
    EVICTED,
    FLAGS,
    GPU,
    LIVE,
    NODE,
    NONE,
    NUM_BLOCKS,
    NUM_REFUSED,
    RANK,
    SLOT,
    TENANT,
    TIER,
    VALID,
    WRITE_BACK,
    WRITE_MODE,
    Tables,
    at,
    wide,
)
from tiers.books.moves import add, give_copy, is_pinned, leave, went
from tiers.books.orders import descendants
from tiers.books.requests import takes
from tiers.books.shares import is_beyond
from tiers.policies import choose

# What is counted for each tier: blocks that left for room, that lost the one before them, that came, that went up, that
# left because their tenant had more than it may.
OUT, ORPHANED, STORED, LOADED, BEYOND = 0, 1, 2, 3, 4
NUM_MOVED = 5


@part
def evict(t: Tables, words: Words, free: Ints64, moved: Ints64, copy: int, why: int) -> None:
    """The block leaves its tier: to the next slower one, unless it is there already. `why` is OUT or BEYOND."""
    node, rank = at(t.copies, copy, NODE), at(t.copies, copy, RANK)
    leave(t, copy, EVICTED)
    moved[why, rank] += 1
    target = _next(t, node, rank)
    has_moved = target != NONE and _pass_down(t, moved, node, rank, target)
    went(t, node, rank, t.levels[target, TIER] if has_moved else NONE)
    _settle(t, words, free, copy)
    if fastest(t, node) == NONE:
        _forget(t, words, free, moved, node)


@part
def _next(t: Tables, node: int, rank: int) -> int:
    for slower in range(rank + 1, len(t.levels)):
        if takes(t, slower, node):
            return slower
    return NONE


@part
def _pass_down(t: Tables, moved: Ints64, node: int, rank: int, target: int) -> bool:
    is_exclusive = t.levels[target, WRITE_MODE] == WRITE_BACK
    below = copy_at(t, node, target)
    if below != NONE:
        if is_exclusive:  # there, its place is that of its last use
            _enter(t, below)
        return False
    has_room = t.levels[target, NUM_BLOCKS] < t.levels[target, CAPACITY]
    if is_exclusive or (fastest(t, node) == NONE and has_room and not _is_at_quota(t, node, target)):
        _put(t, moved, node, rank, target)
        return True
    return False


@part
def _put(t: Tables, moved: Ints64, node: int, origin: int, rank: int) -> None:
    came = t.levels[origin, TIER]
    copy = add(t, node, rank, came, came)
    t.copies[copy, FLAGS] = LIVE | VALID
    moved[STORED, rank] += 1
    if not is_pinned(t, node):
        _enter(t, copy)


@part
def _enter(t: Tables, copy: int) -> None:
    choose.enter(t, copy)
    choose.note(t, copy)


@part
def _settle(t: Tables, words: Words, free: Ints64, copy: int) -> None:
    """It has left its tier, and nobody reads it."""
    if at(t.copies, copy, RANK) == GPU:
        bitmap.put(words, free, at(t.copies, copy, SLOT))
    give_copy(t, copy)


@part
def _forget(t: Tables, words: Words, free: Ints64, moved: Ints64, node: int) -> None:
    """A block that has left its last tier takes those after it along: nothing could find them."""
    if at(t.nodes, node, CHILD) != NONE:
        after = descendants(t.nodes, t.copies, t.memories, t.places, t.levels, t.counts, node)
        for number in range(len(after)):
            child = wide(after[number])
            if not is_pinned(t, child):
                _orphan(t, words, free, moved, child)
    tidy(t, node)


@part
def _orphan(t: Tables, words: Words, free: Ints64, moved: Ints64, node: int) -> None:
    for rank in range(len(t.levels)):
        copy = copy_at(t, node, rank)
        if copy != NONE:
            moved[ORPHANED, rank] += 1
            leave(t, copy, DROPPED)
            _settle(t, words, free, copy)
    tidy(t, node)


@part
def _is_at_quota(t: Tables, node: int, rank: int) -> bool:
    return is_beyond(t, rank, at(t.nodes, node, TENANT), wide(1))


@part
def rebalance(t: Tables, words: Words, free: Ints64, moved: Ints64) -> None:
    """Tenants that have more than they may, and slower tiers that do, pass their oldest blocks on."""
    for number in range(len(t.levels)):
        rank = wide(number)
        surplus = choose.surplus(t, rank)
        while surplus != NONE:
            evict(t, words, free, moved, surplus, BEYOND)
            surplus = choose.surplus(t, rank)
        while rank != GPU and t.levels[rank, NUM_BLOCKS] > t.levels[rank, CAPACITY]:
            oldest = choose.victim(t, rank, NONE, NONE)
            if oldest == NONE:
                break
            evict(t, words, free, moved, oldest, OUT)


@part
def store(t: Tables, words: Words, free: Ints64, moved: Ints64, node: int) -> bool:
    """Into tiers that write through, take it and have not got it; False where there is none."""
    missing, wanted = 0, 0  # a bit a tier
    for rank in range(1, len(t.levels)):
        writes_through = t.levels[rank, WRITE_MODE] != WRITE_BACK
        missing |= (writes_through and takes(t, rank, node) and copy_at(t, node, rank) == NONE) << rank
    for rank in range(1, len(t.levels)):
        has_room = missing >> rank & 1 and _make_room(t, words, free, moved, node, wide(rank))
        wanted |= wide(has_room) << rank
    for rank in range(1, len(t.levels)):
        if wanted >> rank & 1:
            _put(t, moved, node, GPU, wide(rank))
    return missing != 0


@part
def _make_room(t: Tables, words: Words, free: Ints64, moved: Ints64, node: int, rank: int) -> bool:
    """For the block: at its tenant's cost where that has as much as it may."""
    while _is_at_quota(t, node, rank):
        own = choose.victim(t, rank, NONE, at(t.nodes, node, TENANT))
        if own == NONE:
            t.levels[rank, NUM_REFUSED] += 1
            return False
        evict(t, words, free, moved, own, BEYOND)
    while t.levels[rank, NUM_BLOCKS] >= t.levels[rank, CAPACITY]:
        oldest = choose.victim(t, rank, NONE, NONE)
        if oldest == NONE:
            return False
        evict(t, words, free, moved, oldest, OUT)
    return True
