"""A whole request where blocks are keys alone, compiled: looked up, brought to gpu, computed, given back.

Requests come one after the other, so every block that is not part of the one at hand may leave. Knows nothing about
where keys come from.
"""

import numpy as np

from tiers.books import bitmap
from tiers.books.compiled import Ints32, Ints64, Words, entry, making_entry, part
from tiers.books.family import copy_at, fastest, follow, known
from tiers.books.hollow_ways import LOADED, OUT, evict, rebalance, store
from tiers.books.index import find
from tiers.books.layout import (
    ARC,
    DROPPED,
    FLAGS,
    GPU,
    LIVE,
    NODE,
    NONE,
    NUM_HITS,
    NUM_OVER,
    PINS,
    POLICY,
    PROMOTED,
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
from tiers.books.memories import computed
from tiers.books.moves import add, give_copy, leave, pin, touch_all
from tiers.books.shares import inherited
from tiers.policies import choose


@making_entry
def serve(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    words: Words, free: Ints64, keys: Ints32, root: Ints32, num_prompt: int, tiers: Ints64, pinned: Ints64,
    moved: Ints64, tenant: int,
) -> int:  # fmt: skip
    """The tenant's request with these blocks, the first `num_prompt` of them its prompt's, from start to end.

    Returns how many blocks of the prompt were found, and fills `tiers` with where. `pinned` int64 [n] is scratch,
    `moved` int64 [NUM_MOVED, levels] is added to. All keys must fit into gpu, and rows for them be reserved.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_found = find_prefix(nodes, copies, mems, places, levels, counts, keys[:num_prompt], tiers)
    num_lifted = _pin(t, keys[:num_found], pinned, moved)
    _give_slots(t, words, free, moved, keys[:num_found], pinned[:num_found], tenant)
    slots = np.empty(len(keys) - num_found, np.int64)
    _take_slots(t, words, free, moved, keys[num_found:], num_prompt - num_found, slots, tenant)
    if len(levels) > 1:
        _store_hits(t, words, free, moved, pinned[:num_found])
    rebalance(t, words, free, moved)
    if num_lifted:
        _store_lifted(t, words, free, moved, pinned[:num_found])
    _register(t, words, free, moved, keys, num_found, root, slots, pinned, tenant)
    if t.levels[GPU, NUM_OVER] > 0:
        rebalance(t, words, free, moved)
    _release(t, pinned[: len(keys)])
    rebalance(t, words, free, moved)
    return num_found


@entry
def find_prefix(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    keys: Ints32, tiers: Ints64,
) -> int:  # fmt: skip
    """Length of the longest run of blocks, from the first, that lie in some tier; fills the fastest for each."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    for number in range(len(keys)):
        node = find(t, keys[number])
        copy = NONE if node == NONE else fastest(t, node)
        if copy == NONE:
            return number
        tiers[number] = levels[at(copies, copy, RANK), TIER]
    return len(keys)


@part
def _pin(t: Tables, keys: Ints32, pinned: Ints64, moved: Ints64) -> int:
    """Blocks that were found are read from gpu; those that lie elsewhere come up: how many. They have no slot yet."""
    num_lifted = 0
    for number in range(len(keys)):
        t.nodes[find(t, keys[number]), NUM_HITS] += 1
    for number in range(len(keys)):  # what is there is held before anything leaves
        copy = copy_at(t, find(t, keys[number]), GPU)
        pinned[number] = copy
        if copy != NONE:
            pin(t, copy)
    for number in range(len(keys)):
        if pinned[number] == NONE:
            pinned[number] = _lift(t, find(t, keys[number]), moved)
            num_lifted += 1
    return num_lifted


@part
def _lift(t: Tables, node: int, moved: Ints64) -> int:
    """Its copy in gpu. An exclusive tier gives its own up."""
    source = fastest(t, node)
    rank = at(t.copies, source, RANK)
    copy = add(t, node, GPU, t.levels[rank, TIER], t.levels[rank, TIER])
    moved[LOADED, rank] += 1
    if t.levels[rank, WRITE_MODE] == WRITE_BACK:
        leave(t, source, PROMOTED)
        give_copy(t, source)
    pin(t, copy)
    return copy


@part
def _give_slots(
    t: Tables, words: Words, free: Ints64, moved: Ints64, keys: Ints32, pinned: Ints64, tenant: int
) -> None:
    """To blocks that came up."""
    for number in range(len(keys)):
        copy = pinned[number]
        if at(t.copies, copy, FLAGS) & VALID == 0:
            incoming = _incoming(t, keys[number])
            t.copies[copy, SLOT] = _take_slot(t, words, free, moved, incoming, tenant, wide(0))


@part
def _take_slots(
    t: Tables, words: Words, free: Ints64, moved: Ints64, keys: Ints32, num_known: int, slots: Ints64, tenant: int
) -> None:
    """For blocks that are to be computed; what an answer will be is not known yet."""
    for number in range(len(slots)):
        incoming = _incoming(t, keys[number]) if number < num_known else NONE
        slots[number] = _take_slot(t, words, free, moved, incoming, tenant, wide(number + 1))


@part
def _incoming(t: Tables, key: Ints32) -> int:
    """For what room is made, where the policy asks."""
    return find(t, key) if t.levels[GPU, POLICY] == ARC else NONE


@part
def _take_slot(
    t: Tables, words: Words, free: Ints64, moved: Ints64, incoming: int, tenant: int, num_coming: int
) -> int:
    slot = bitmap.take(words, free)
    while slot == NONE:
        evict(t, words, free, moved, choose.victim_for(t, GPU, incoming, tenant, num_coming), OUT)
        slot = bitmap.take(words, free)
    return slot


@part
def _store_hits(t: Tables, words: Words, free: Ints64, moved: Ints64, pinned: Ints64) -> None:
    """Of blocks that were hit in gpu."""
    for number in range(len(pinned)):
        if at(t.copies, pinned[number], FLAGS) & VALID:
            store(t, words, free, moved, at(t.copies, pinned[number], NODE))


@part
def _store_lifted(t: Tables, words: Words, free: Ints64, moved: Ints64, pinned: Ints64) -> None:
    """Blocks that came up are there now."""
    for number in range(len(pinned)):
        if at(t.copies, pinned[number], FLAGS) & VALID == 0:
            t.copies[pinned[number], FLAGS] |= VALID
            if store(t, words, free, moved, at(t.copies, pinned[number], NODE)):
                rebalance(t, words, free, moved)


@part
def _register(
    t: Tables, words: Words, free: Ints64, moved: Ints64, keys: Ints32, first: int, root: Ints32, slots: Ints64,
    pinned: Ints64, tenant: int,
) -> None:  # fmt: skip
    """Blocks from `first` on are computed. Exclusive tiers give theirs up, those that write through get them."""
    parent = known(t, root if first == 0 else keys[first - 1], wide(first) - 1)
    tenant = inherited(t, parent, fastest(t, parent) != NONE, tenant)
    for number in range(first, len(keys)):
        node = known(t, keys[number], wide(number))
        follow(t, node, parent)
        parent = node
        tenant = inherited(t, node, fastest(t, node) != NONE, tenant)
        t.nodes[node, TENANT] = tenant
        copy = copy_at(t, node, GPU)
        is_new = copy == NONE
        if is_new:
            copy = add(t, node, GPU, GPU, NONE)
            t.copies[copy, SLOT] = slots[number - first]
            t.copies[copy, FLAGS] = LIVE | VALID
            computed(t, node)
        else:  # it is there, though not what came before it
            bitmap.put(words, free, slots[number - first])
        pin(t, copy)
        pinned[number] = copy
        if is_new and len(t.levels) > 1:
            _spread(t, words, free, moved, node)


@part
def _spread(t: Tables, words: Words, free: Ints64, moved: Ints64, node: int) -> None:
    for rank in range(1, len(t.levels)):
        copy = copy_at(t, node, rank)
        if copy != NONE and t.levels[rank, WRITE_MODE] == WRITE_BACK:
            leave(t, copy, DROPPED)
            give_copy(t, copy)
    if store(t, words, free, moved, node):
        rebalance(t, words, free, moved)


@part
def _release(t: Tables, pinned: Ints64) -> None:
    """The last block first, so that what comes before stays longer."""
    for number in range(len(pinned) - 1, -1, -1):
        copy = pinned[number]
        t.copies[copy, PINS] -= 1
        if at(t.copies, copy, PINS) == 0:
            touch_all(t, at(t.copies, copy, NODE))
