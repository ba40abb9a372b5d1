"""What a request asks of the tables, all its blocks at once. Compiled; stops where bytes would have to move.

Knows nothing about how they move: whoever calls does that step for one block and goes on.
"""

from tiers.books import bitmap
from tiers.books.compiled import Ints32, Ints64, Words, entry, part
from tiers.books.family import copy_at, fastest, follow, known, lies_in, tidy
from tiers.books.index import ask_for_places, find, guess, has_key
from tiers.books.layout import (
    ARC,
    CAPACITY,
    CHILD,
    EVICTED,
    FLAGS,
    GPU,
    LIVE,
    MEMORIES,
    NODE,
    NONE,
    NUM_HITS,
    PINS,
    POLICY,
    SLOT,
    STORE_AFTER_HITS,
    TENANT,
    VALID,
    WRITE_BACK,
    WRITE_MODE,
    WRITE_SELECTIVE,
    Tables,
    at,
    num_rows_left,
    wide,
)
from tiers.books.memories import computed
from tiers.books.moves import add, give_copy, is_busy, is_pinned, leave, pin, touch_all, went
from tiers.books.shares import inherited
from tiers.policies import choose

# Places that are read before the first of them is looked at; then ever more.
FIRST_GUESSES = 16


@entry
def resident_prefix(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    keys: Ints32, rows: Ints32, tiers: Ints32,
) -> int:  # fmt: skip
    """Length of the longest run of blocks, from the first, that lie in some tier; fills their nodes and tiers."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    guessed = 0
    for number in range(len(keys)):
        if number == guessed:
            guessed = min(len(keys), 2 * guessed + FIRST_GUESSES)
            ask_for_places(t, keys[guessed : 2 * guessed + FIRST_GUESSES])
            guess(t, keys[number:guessed], rows[number:guessed])
        node = wide(rows[number])
        if node == NONE or not has_key(t, node, keys[number]):
            node = find(t, keys[number])
        copy = NONE if node == NONE else fastest(t, node)
        if copy == NONE:
            return number
        rows[number] = node
        tiers[number] = lies_in(t, copy)
    return len(keys)


@entry
def num_in_gpu(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rows: Ints32,
) -> tuple[int, int]:  # fmt: skip
    """How many of the nodes are there, and how many of those nobody reads."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_there, num_idle = 0, 0
    for number in range(len(rows)):
        copy = copy_at(t, wide(rows[number]), GPU)
        if copy != NONE:
            num_there += 1
            num_idle += choose.is_idle(t, copy)
    return num_there, num_idle


@entry
def count_hits(nodes: Ints32, rows: Ints32) -> None:
    for number in range(len(rows)):
        nodes[rows[number], NUM_HITS] += 1


@entry
def pin_ready(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rows: Ints32, pinned: Ints32, slots: Ints64,
) -> int:  # fmt: skip
    """Pins those that validly lie in gpu and fills their copies and slots; NONE for the others: returns how many."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_others = 0
    for number in range(len(rows)):
        copy = copy_at(t, wide(rows[number]), GPU)
        if copy != NONE and at(t.copies, copy, FLAGS) & VALID:
            pin(t, copy)
            pinned[number] = copy
            slots[number] = at(t.copies, copy, SLOT)
        else:
            pinned[number] = slots[number] = NONE
            num_others += 1
    return num_others


@entry
def lacking(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    pinned: Ints32, rows: Ints32,
) -> int:  # fmt: skip
    """Fills `rows` with those of the copies in gpu whose block a tier that writes through takes and has not."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_lacking = 0
    for number in range(len(pinned)):
        copy = wide(pinned[number])
        node = at(copies, copy, NODE)
        if at(copies, copy, FLAGS) & VALID == 0:
            continue
        for rank in range(1, len(levels)):
            is_wanted = levels[rank, WRITE_MODE] != WRITE_BACK and takes(t, rank, node)
            if is_wanted and copy_at(t, node, rank) == NONE:
                rows[num_lacking] = copy
                num_lacking += 1
                break
    return num_lacking


@part
def takes(t: Tables, rank: int, node: int) -> bool:
    """The tier is on, and the block was hit often enough, where that is asked for."""
    is_hit = (
        t.levels[rank, WRITE_MODE] != WRITE_SELECTIVE or at(t.nodes, node, NUM_HITS) >= t.levels[rank, STORE_AFTER_HITS]
    )
    return t.levels[rank, CAPACITY] > 0 and is_hit


@entry
def take_slots(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    words: Words, free: Ints64, keys: Ints32, slots: Ints64, tenant: int, num_coming: int, step: int,
) -> tuple[int, int]:  # fmt: skip
    """Fills `slots`, from its start, with free ones and those of blocks that leave gpu for nowhere.

    Returns how many it has filled and how many blocks have left. `keys` are those of the tenant's blocks that will lie
    there, as far as they are known. `num_coming` of its blocks do not count yet, and `step` (0 or 1) more of them with
    each slot.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    num_evicted = 0
    for number in range(len(slots)):
        slot = bitmap.take(words, free)
        while slot == NONE:
            incoming = find(t, keys[number]) if number < len(keys) and levels[0, POLICY] == ARC else NONE
            copy = choose.victim_for(t, GPU, incoming, tenant, num_coming + step * (number + 1))
            if copy == NONE or not _leaves_for_nowhere(t, copy) or num_rows_left(mems, counts, MEMORIES) < 2:
                return number, num_evicted
            _let_leave(t, copy)
            bitmap.put(words, free, at(t.copies, copy, SLOT))
            give_copy(t, copy)
            num_evicted += 1
            slot = bitmap.take(words, free)
        slots[number] = slot
    return len(slots), num_evicted


@part
def _leaves_for_nowhere(t: Tables, copy: int) -> bool:
    """No transfer reads it, and the tier that would take it has it already; or none would, and nothing follows it."""
    node = at(t.copies, copy, NODE)
    if is_busy(t, copy):
        return False
    for rank in range(1, len(t.levels)):
        if takes(t, rank, node):
            return t.levels[rank, WRITE_MODE] != WRITE_BACK and copy_at(t, node, rank) != NONE
    return at(t.nodes, node, CHILD) == NONE


@part
def _let_leave(t: Tables, copy: int) -> None:
    node = at(t.copies, copy, NODE)
    leave(t, copy, EVICTED)
    went(t, node, GPU, NONE)
    tidy(t, node)


@entry
def register(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    keys: Ints32, parent_key: Ints32, depth: int, slots: Ints64, pinned: Ints32, tenant: int,
) -> int:  # fmt: skip
    """Blocks that follow each other are computed, in these slots: fills the copies that are read from now on.

    Returns how many are done. It stops after a block that slower tiers have, too. They are the tenant's, or that of the
    blocks before them.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    parent = known(t, parent_key, depth - 1)
    tenant = inherited(t, parent, fastest(t, parent) != NONE, tenant)
    for number in range(len(keys)):
        node = known(t, keys[number], depth + number)
        follow(t, node, parent)
        parent = node
        is_alone = fastest(t, node) == NONE
        tenant = inherited(t, node, not is_alone, tenant)
        t.nodes[node, TENANT] = tenant
        copy = copy_at(t, node, GPU)
        is_new = copy == NONE
        if is_new:
            copy = add(t, node, GPU, GPU, NONE)
            t.copies[copy, SLOT] = slots[number]
            t.copies[copy, FLAGS] = LIVE | VALID
            computed(t, node)
        pin(t, copy)
        pinned[number] = copy
        if is_new and not is_alone:
            return number + 1
    return len(keys)


@entry
def release(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    words: Words, free: Ints64, slots: Ints64, pinned: Ints32, end: int,
) -> int:  # fmt: skip
    """Blocks `end` − 1 … 0 are no longer read, the last one first; a slot that is no copy's becomes free.

    NONE when all are done; else it has stopped after that block, whose copy has left its tier and was read by no other.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    for number in range(end - 1, -1, -1):
        copy, slot = wide(pinned[number]), slots[number]
        if slot != NONE and (copy == NONE or at(t.copies, copy, SLOT) != slot):
            bitmap.put(words, free, slot)
        if copy == NONE:
            continue
        t.copies[copy, PINS] -= 1
        if at(t.copies, copy, PINS) > 0:
            continue
        if at(t.copies, copy, FLAGS) & LIVE == 0:
            return number
        node = at(t.copies, copy, NODE)
        if not is_pinned(t, node):
            touch_all(t, node)
    return NONE
