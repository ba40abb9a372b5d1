"""Walks over a tier's order and over families, for what happens seldom. Compiled over the tables.

Knows nothing about why somebody asks.
"""

import numpy as np

from tiers.books.compiled import Ints32, Ints64, making_entry, making_part
from tiers.books.family import copy_at
from tiers.books.layout import (
    AFTER,
    CHILD,
    COPIES,
    ENTERED,
    FLAGS,
    HELD,
    LRU,
    NODE,
    NODES,
    NONE,
    NOTED_BEFORE,
    NOTES,
    PARENT,
    POLICY,
    QUEUED,
    QUEUES,
    RANK,
    VALID,
    YOUNGER,
    Tables,
    at,
    numbers,
    wide,
)
from tiers.policies.choose import is_idle, unnote

FIRST, SECOND = numbers(0, 2)


@making_entry
def oldest_first(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int,
) -> Ints32:  # fmt: skip
    """Copies that nobody reads, about in the order in which they would leave, children before their parents."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    if levels[rank, POLICY] == LRU:
        return _queued(t, rank, FIRST)
    oldest = np.concatenate((_aside(t, rank), _queued(t, rank, FIRST), _queued(t, rank, SECOND)))
    order = _parents_newer(t, t.copies[oldest, NODE][::-1])
    kept = 0
    for node in order:
        copy = copy_at(t, node, rank)
        if copy != NONE and is_idle(t, copy):
            order[kept] = copy
            kept += 1
    return order[:kept]


@making_part
def _queued(t: Tables, rank: int, queue: int) -> Ints32:
    """Those of the queue that are idle, oldest first."""
    first = QUEUES + 3 * queue
    rows = np.empty(t.levels[rank, first + 2], np.int32)
    kept, copy = 0, t.levels[rank, first]
    while copy != NONE:
        if is_idle(t, copy):
            rows[kept] = copy
            kept += 1
        copy = at(t.copies, copy, AFTER)
    return rows[:kept]


@making_part
def _aside(t: Tables, rank: int) -> Ints32:
    """Those that came to the old end of their queue and could not leave."""
    rows = np.empty(t.counts[COPIES], np.int32)
    kept = 0
    for copy in range(t.counts[COPIES]):
        is_aside = at(t.copies, copy, FLAGS) & (ENTERED | HELD | QUEUED) == ENTERED
        if is_aside and at(t.copies, copy, RANK) == rank:
            rows[kept] = copy
            kept += 1
    return rows[:kept]


@making_entry
def parents_newer(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    newest_first: Ints32,
) -> Ints32:  # fmt: skip
    """Nodes in an order of use, oldest first, where parents are newer than their children, however they came in."""
    return _parents_newer(Tables(nodes, copies, mems, places, levels, counts), newest_first)


@making_part
def _parents_newer(t: Tables, newest_first: Ints32) -> Ints32:
    is_seen = np.zeros(t.counts[NODES], np.bool_)
    order = np.empty(t.counts[NODES], np.int32)
    end = len(order)
    for start in newest_first:
        length, node = 0, wide(start)
        while node != NONE and not is_seen[node]:
            is_seen[node] = True
            length += 1
            node = at(t.nodes, node, PARENT)
        # The chain lies from its head, the newest, to its tail: the order is filled from its new end.
        node = wide(start)
        for place in range(end - length, end):
            order[place] = node
            node = at(t.nodes, node, PARENT)
        end -= length
    return order[end:]


@making_entry
def descendants(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    node: int,
) -> Ints32:  # fmt: skip
    """All blocks that follow the node, parents before their children."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    found = np.empty(16, np.int32)
    num_found, num_walked = 0, 0
    parent = node
    while True:
        child = at(t.nodes, parent, CHILD)
        while child != NONE:
            if num_found == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[num_found] = child
            num_found += 1
            child = at(t.nodes, child, YOUNGER)
        if num_walked == num_found:
            return found[:num_found]
        parent = wide(found[num_walked])
        num_walked += 1


@making_entry
def take_notes(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int,
) -> Ints32:  # fmt: skip
    """Nodes of what was used since the last call, oldest first, as far as it is stored."""
    t = Tables(nodes, copies, mems, places, levels, counts)
    noted = np.empty(levels[rank, NOTES + 2], np.int32)
    kept, copy = 0, levels[rank, NOTES]
    while copy != NONE:
        if at(copies, copy, FLAGS) & VALID:
            noted[kept] = copies[copy, NODE]
            kept += 1
        after = at(copies, copy, NOTED_BEFORE + 1)
        unnote(t, copy, rank)
        copy = after
    return noted[:kept]
