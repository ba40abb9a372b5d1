"""Where each block lies in the stack of last use when a request asks for it: Mattson et al., IBM Systems Journal 1970.

A cache of C blocks under LRU holds the C topmost blocks, whatever C is: one pass answers for every size. Positions are
counted in a Fenwick tree over the times of last use (Bennett & Kruskal, 1975), O(log unique) an access, compiled by
numba. Memory follows the number of distinct blocks, not of accesses.
"""

from enum import StrEnum

import numpy as np

from tiers.books.compiled import Ints64 as Ints
from tiers.books.compiled import entry, making_entry
from tiers.whatif.accesses import Accesses

# Position of a block that was never touched before, or that follows one in its request.
NEVER = np.int64(np.iinfo(np.int64).max)
# Accesses between two looks at whether the times of last use have to be numbered anew.
CHUNK_ACCESSES = 1 << 16


class TouchOrder(StrEnum):
    """How a request's blocks become the newest; our tiers go from tail to head, so that parents stay newer."""

    TAIL = "tail"
    HEAD = "head"


def stack_positions(accesses: Accesses, order: TouchOrder = TouchOrder.TAIL) -> Ints:
    """int64 [A]: an LRU cache serves the access if and only if it holds more blocks than this. NEVER: none does.

    All blocks of a request are looked up before any is touched, and a hit needs every block before it to be one: the
    answer is the deepest position from the request's head to the block.
    """
    stack = RecencyStack(accesses.num_unique)
    positions = np.empty(accesses.num_accesses, np.int64)
    starts = accesses.starts
    first = 0
    while first < accesses.num_requests:
        after = int(np.searchsorted(starts, starts[first] + CHUNK_ACCESSES, side="right")) - 1
        after = max(after, first + 1)
        part = slice(starts[first], starts[after])
        chunk_starts = starts[first : after + 1] - starts[first]
        positions[part] = stack.access(accesses.block_ids[part], chunk_starts, order)
        first = after
    return positions


class RecencyStack:
    """Blocks 0 … `num_blocks` − 1 by time of last use; more are made room for when they come."""

    def __init__(self, num_blocks: int = 0) -> None:
        self._time_of = np.full(num_blocks, -1, np.int64)
        self._block_at = np.empty(0, np.int64)
        self._tree = np.zeros(1, np.int64)
        self._now = 0
        self.num_touched = 0

    def access(self, block_ids: Ints, starts: Ints, order: TouchOrder) -> Ints:
        """Positions, as in `stack_positions`, of the next requests' blocks."""
        self._make_room(block_ids)
        positions = np.empty(len(block_ids), np.int64)
        self._now, self.num_touched = _access(
            block_ids,
            starts,
            order is TouchOrder.TAIL,
            self._time_of,
            self._block_at,
            self._tree,
            self._now,
            self.num_touched,
            positions,
        )
        return positions

    def _make_room(self, block_ids: Ints) -> None:
        num_known = max(len(self._time_of), int(block_ids.max()) + 1 if len(block_ids) else 0)
        if num_known > len(self._time_of):
            grown = np.full(max(num_known, 2 * len(self._time_of)), -1, np.int64)
            grown[: len(self._time_of)] = self._time_of
            self._time_of = grown
        if self._now + len(block_ids) > len(self._block_at):
            self._number_anew(len(block_ids))

    def _number_anew(self, num_more: int) -> None:
        """Times become 0, 1, 2 … in the same order; as much room again is left, so that this is O(1) an access."""
        times = np.flatnonzero(self._time_of[self._block_at[: self._now]] == np.arange(self._now))
        newest_last = self._block_at[times]
        num_times = 2 * len(newest_last) + num_more
        self._block_at = np.empty(num_times, np.int64)
        self._block_at[: len(newest_last)] = newest_last
        self._time_of[newest_last] = np.arange(len(newest_last))
        self._tree = _tree_of(len(newest_last), num_times)
        self._now = len(newest_last)

    def check(self) -> None:
        """Raises AssertionError where the tree and the times of last use disagree."""
        live = self._time_of[self._time_of >= 0]
        assert len(np.unique(live)) == len(live) == self.num_touched, "a time of last use belongs to two blocks"
        counts = np.zeros(len(self._block_at), np.int64)
        counts[live] = 1
        expected = np.concatenate(([0], np.cumsum(counts)))
        for time in range(len(counts) + 1):
            assert count_before(self._tree, time) == expected[time], "the tree counts something else"


@entry
def _access(
    block_ids: Ints, starts: Ints, tail_first: bool, time_of: Ints, block_at: Ints, tree: Ints, now: int,
    num_touched: int, positions: Ints,
) -> tuple[int, int]:  # fmt: skip
    for request in range(len(starts) - 1):
        first, end = starts[request], starts[request + 1]
        deepest = np.int64(0)
        for index in range(first, end):
            time = time_of[block_ids[index]]
            if time < 0 or deepest == NEVER:
                deepest = NEVER
            else:
                deepest = max(deepest, np.int64(num_touched - count_before(tree, time + 1)))
            positions[index] = deepest
        for step in range(end - first):
            block = block_ids[end - 1 - step if tail_first else first + step]
            time = time_of[block]
            if time < 0:
                num_touched += 1
            else:
                add(tree, time, -1)
            time_of[block] = now
            block_at[now] = block
            add(tree, now, 1)
            now += 1
    return now, num_touched


@entry
def count_before(tree: Ints, time: int) -> int:
    """How many blocks were last used before `time`."""
    total = 0
    while time > 0:
        total += int(tree[time])
        time &= time - 1
    return total


@entry
def add(tree: Ints, time: int, amount: int) -> None:
    index = time + 1
    while index < len(tree):
        tree[index] += amount
        index += index & -index


@making_entry
def _tree_of(num_ones: int, num_times: int) -> Ints:
    """The tree of `num_ones` ones and then zeros: node i counts the times (i − lowest bit of i, i]."""
    tree = np.empty(num_times + 1, np.int64)
    tree[0] = 0
    for index in range(1, num_times + 1):
        tree[index] = max(min(index, num_ones) - (index - (index & -index)), 0)
    return tree
