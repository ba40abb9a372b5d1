"""Blocks of a request that come up to gpu, all of them at once. Compiled; knows nothing about slots or bytes."""

from tiers.books.compiled import Ints32, Ints64, entry, part
from tiers.books.family import copy_at, fastest, lies_in
from tiers.books.layout import (
    CAPACITY,
    FLAGS,
    GPU,
    HOLDS,
    KEEPS_NOTES,
    LIVE,
    NONE,
    PINS,
    PROMOTED,
    RANK,
    SLOT,
    TIER,
    VALID,
    WRITE_BACK,
    WRITE_MODE,
    Tables,
    at,
    wide,
)
from tiers.books.moves import add, leave, pin


@entry
def begin(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    hits: Ints32, pinned: Ints32, slots: Ints64, missing: Ints32, sources: Ints32,
) -> int:  # fmt: skip
    """Pins the hits that `pin_ready` left, those with NONE in `pinned`, and fills their copies. Returns how many begin.

    `missing` has them by their index: first those that begin, then, last first, those that are on their way and have
    their slots. The others get one later, and have their `sources`, which are held; where their tier is exclusive, the
    block's charge leaves it now.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_new, rest = 0, len(missing)
    for number in range(len(hits)):
        if pinned[number] != NONE:
            continue
        node = wide(hits[number])
        copy = copy_at(t, node, GPU)
        if copy == NONE:
            source = fastest(t, node)
            copy = _promoted(t, node, source)
            missing[num_new], sources[num_new] = number, source
            num_new += 1
        else:
            rest -= 1
            missing[rest] = number
        pin(t, copy)
        pinned[number] = copy
        slots[number] = at(t.copies, copy, SLOT)
    return num_new


@entry
def place(copies: Ints32, loaded: Ints32, sources: Ints32, slots: Ints64, ranks: Ints64) -> None:
    """The copies that begin get their slots; fills the ranks of what they come from."""
    for number in range(len(loaded)):
        copies[loaded[number], SLOT] = slots[number]
        ranks[number] = copies[sources[number], RANK]


@part
def _promoted(t: Tables, node: int, source: int) -> int:
    rank = at(t.copies, source, RANK)
    copy = add(t, node, GPU, lies_in(t, source), t.levels[rank, TIER])
    t.copies[copy, HOLDS] = 1
    t.copies[source, HOLDS] += 1
    if not keeps_hits(t.levels, rank):
        leave(t, source, PROMOTED)
    return copy


@entry
def keeps_hits(levels: Ints64, rank: int) -> bool:
    """A block stays in the tier when it is read, besides the copy that goes up: others may want it, or all get all."""
    writes_through = levels[rank, WRITE_MODE] != WRITE_BACK and levels[rank, CAPACITY] > 0
    return bool(writes_through or levels[rank, KEEPS_NOTES] != 0)


@entry
def end(copies: Ints32, loaded: Ints32, sources: Ints32) -> tuple[bool, bool]:
    """The bytes are there. Returns whether a source is to be settled, and whether a block is read by nobody."""
    has_left, is_unread = False, False
    for number in range(len(loaded)):
        copy, source = wide(loaded[number]), wide(sources[number])
        copies[source, HOLDS] -= 1
        has_left |= at(copies, source, FLAGS) & LIVE == 0
        copies[copy, HOLDS] -= 1
        copies[copy, FLAGS] = at(copies, copy, FLAGS) | VALID
        is_unread |= at(copies, copy, PINS) == 0
    return has_left, is_unread
