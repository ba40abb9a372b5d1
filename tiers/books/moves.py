"""One block's steps: it comes into a tier, is read, is let go, leaves. Compiled over the tables.

Knows nothing about slots, bytes or leases.
"""

from tiers.books.compiled import part
from tiers.books.family import copy_at, fastest, unref
from tiers.books.layout import (
    CAME,
    COPIES,
    COPY,
    DROPPED,
    FLAGS,
    GPU,
    HOLDS,
    LIVE,
    NODE,
    NONE,
    NUM_BLOCKS,
    NUM_COPY_COLUMNS,
    NUM_DROPPED,
    NUM_FREED,
    NUM_GIVEN_UP,
    NUM_NEW,
    NUM_REFS,
    PINS,
    PROMOTED,
    RANK,
    SLOT,
    SOURCE,
    VALID,
    WENT,
    Tables,
    at,
    give_row,
    take_row,
)
from tiers.books.memories import dropped
from tiers.books.shares import charge, discharge
from tiers.policies import choose


@part
def add(t: Tables, node: int, rank: int, source: int, origin: int) -> int:
    """A copy that counts in the tier from now on and is not valid yet; `origin` is the tier it came from, or NONE."""
    copy = take_row(t.copies, t.counts, COPIES)
    for column in range(NUM_COPY_COLUMNS):
        t.copies[copy, column] = 0
    t.copies[copy, NODE] = node
    t.copies[copy, RANK] = rank
    t.copies[copy, SLOT] = NONE
    t.copies[copy, SOURCE] = source
    t.copies[copy, FLAGS] = LIVE
    t.nodes[node, COPY + 2 * rank] = copy
    t.nodes[node, NUM_REFS] += 1
    t.levels[rank, NUM_BLOCKS] += 1
    charge(t, node, rank)
    t.levels[rank, NUM_NEW if origin == NONE else CAME + origin] += 1
    return copy


@part
def leave(t: Tables, copy: int, how: int) -> None:
    """It counts no longer. After EVICTED `went` follows, once it is clear where the block goes."""
    node, rank = at(t.copies, copy, NODE), at(t.copies, copy, RANK)
    t.nodes[node, COPY + 2 * rank] = NONE
    t.levels[rank, NUM_BLOCKS] -= 1
    t.levels[rank, NUM_GIVEN_UP] += at(t.copies, copy, FLAGS) & VALID == 0
    choose.remove(t, copy, how)
    discharge(t, node, rank)
    t.copies[copy, FLAGS] = at(t.copies, copy, FLAGS) & VALID
    if how == PROMOTED:
        t.levels[rank, WENT] += 1
    elif how == DROPPED:
        _is_gone(t, node, rank)


@part
def went(t: Tables, node: int, rank: int, target: int) -> None:
    """What was evicted from the tier is in `target` now; NONE: nowhere."""
    if target != NONE:
        t.levels[rank, WENT + target] += 1
    elif _is_gone(t, node, rank):
        dropped(t, rank, node)


@part
def _is_gone(t: Tables, node: int, rank: int) -> bool:
    is_gone = fastest(t, node) == NONE
    t.levels[rank, NUM_DROPPED if is_gone else NUM_FREED] += 1
    return is_gone


@part
def give_copy(t: Tables, copy: int) -> None:
    """Its row is no longer needed: it has left, and nobody reads or moves it."""
    unref(t, at(t.copies, copy, NODE))
    give_row(t.copies, t.counts, COPIES, copy)
    t.copies[copy, FLAGS] = 0


@part
def is_pinned(t: Tables, node: int) -> bool:
    """Read by a lease, or about to be: none of the block's copies may leave."""
    gpu = copy_at(t, node, GPU)
    return gpu != NONE and (at(t.copies, gpu, PINS) > 0 or at(t.copies, gpu, FLAGS) & VALID == 0)


@part
def pin(t: Tables, copy: int) -> None:
    """None of the block's copies may leave while a lease reads it, so that what is below it stays older."""
    if at(t.copies, copy, PINS) == 0:
        node = at(t.copies, copy, NODE)
        for rank in range(len(t.levels)):
            other = copy_at(t, node, rank)
            if other != NONE:
                choose.hold(t, other)
    t.copies[copy, PINS] += 1


@part
def touch_all(t: Tables, node: int) -> None:
    for rank in range(len(t.levels)):
        copy = copy_at(t, node, rank)
        if copy != NONE:
            choose.touch(t, copy)
            choose.note(t, copy)


@part
def is_busy(t: Tables, copy: int) -> bool:
    """Read by a lease or by transfers."""
    return at(t.copies, copy, PINS) > 0 or at(t.copies, copy, HOLDS) > 0
