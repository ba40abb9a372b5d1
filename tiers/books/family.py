"""Blocks as a tree: each follows its parent, the first ones follow the root of their chain. Knows nothing about tiers'
orders.

A node stays while a tier has a copy of it or remembers it, or while blocks that follow it are known: they can be
reached again once it is back. Its row stays while a copy names it.
"""

from tiers.books.compiled import Ints32, part
from tiers.books.index import find, insert, remove, set_key, tag_of
from tiers.books.layout import (
    CHILD,
    COPY,
    DEPTH,
    ELDER,
    FLAGS,
    IS_KNOWN,
    MEMORY,
    NODES,
    NONE,
    NUM_FOLLOWERS,
    NUM_HITS,
    NUM_INDEXED,
    NUM_REFS,
    PARENT,
    RANK,
    SOURCE,
    TENANT,
    TIER,
    VALID,
    YOUNGER,
    Tables,
    at,
    give_row,
    take_row,
)


@part
def copy_at(t: Tables, node: int, rank: int) -> int:
    """The node's copy in the tier, or NONE."""
    return at(t.nodes, node, COPY + 2 * rank)


@part
def fastest(t: Tables, node: int) -> int:
    """Its copy in the fastest tier that has one, or NONE."""
    for rank in range(len(t.levels)):
        copy = copy_at(t, node, rank)
        if copy != NONE:
            return copy
    return NONE


@part
def lies_in(t: Tables, copy: int) -> int:
    """The tier where the copy's bytes are now: until they have come, where they come from."""
    if at(t.copies, copy, FLAGS) & VALID:
        return t.levels[at(t.copies, copy, RANK), TIER]
    return at(t.copies, copy, SOURCE)


@part
def ensure(t: Tables, key: Ints32, parent_key: Ints32, depth: int) -> int:
    """The node, made and linked to its parent if need be. At most two rows are taken."""
    node = known(t, key, depth)
    if at(t.nodes, node, PARENT) == NONE:
        # Its own parent gets known when it is back.
        follow(t, node, known(t, parent_key, at(t.nodes, node, DEPTH) - 1))
    return node


@part
def follow(t: Tables, node: int, parent: int) -> None:
    """Link the two unless they are, or cannot be: so nothing that others say leads in circles."""
    if at(t.nodes, node, PARENT) == NONE and at(t.nodes, parent, DEPTH) == at(t.nodes, node, DEPTH) - 1:
        _link(t, node, parent)


@part
def known(t: Tables, key: Ints32, depth: int) -> int:
    """The node, made if need be."""
    node = find(t, key)
    if node != NONE:
        return node
    node = take_row(t.nodes, t.counts, NODES)
    set_key(t, node, key)
    for column in range(PARENT, YOUNGER + 1):
        t.nodes[node, column] = NONE
    t.nodes[node, DEPTH] = depth
    t.nodes[node, NUM_HITS] = 0
    t.nodes[node, NUM_REFS] = 0
    t.nodes[node, IS_KNOWN] = 1
    t.nodes[node, MEMORY] = NONE
    t.nodes[node, TENANT] = 0
    for rank in range(len(t.levels)):
        t.nodes[node, COPY + 2 * rank] = NONE
        t.nodes[node, NUM_FOLLOWERS + 2 * rank] = 0
    insert(t.places, tag_of(key), node)
    t.counts[NUM_INDEXED] += 1
    return node


@part
def _link(t: Tables, node: int, parent: int) -> None:
    first = at(t.nodes, parent, CHILD)
    t.nodes[node, PARENT] = parent
    t.nodes[node, ELDER] = NONE
    t.nodes[node, YOUNGER] = first
    if first != NONE:
        t.nodes[first, ELDER] = node
    t.nodes[parent, CHILD] = node


@part
def _unlink(t: Tables, node: int, parent: int) -> None:
    elder, younger = at(t.nodes, node, ELDER), at(t.nodes, node, YOUNGER)
    if elder == NONE:
        t.nodes[parent, CHILD] = younger
    else:
        t.nodes[elder, YOUNGER] = younger
    if younger != NONE:
        t.nodes[younger, ELDER] = elder
    t.nodes[node, PARENT] = NONE


@part
def tidy(t: Tables, node: int) -> None:
    """Forget a node that has neither copies nor children, and then perhaps its parent; one that a tier remembers stays,
    alone.
    """
    while node != NONE and fastest(t, node) == NONE:
        t.nodes[node, NUM_HITS] = 0
        if at(t.nodes, node, CHILD) != NONE or at(t.nodes, node, IS_KNOWN) == 0:
            return
        parent = at(t.nodes, node, PARENT)
        if parent != NONE:
            _unlink(t, node, parent)
        if at(t.nodes, node, MEMORY) == NONE:
            _bury(t, node)
        node = parent


@part
def forgotten(t: Tables, node: int) -> None:
    """A tier no longer remembers it: if that was all, it goes. It has no parent then: see `tidy`."""
    is_needed = at(t.nodes, node, CHILD) != NONE or at(t.nodes, node, MEMORY) != NONE
    if not is_needed and at(t.nodes, node, IS_KNOWN) and fastest(t, node) == NONE:
        _bury(t, node)


@part
def _bury(t: Tables, node: int) -> None:
    remove(t, node)
    t.nodes[node, IS_KNOWN] = 0
    _free(t, node)


@part
def unref(t: Tables, node: int) -> None:
    """A copy's row no longer names it."""
    t.nodes[node, NUM_REFS] -= 1
    if at(t.nodes, node, IS_KNOWN) == 0:
        _free(t, node)


@part
def _free(t: Tables, node: int) -> None:
    if at(t.nodes, node, NUM_REFS) == 0:
        give_row(t.nodes, t.counts, NODES, node)
