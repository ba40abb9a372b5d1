"""Where blocks lie in the stack of last use, in constant memory: the newest exactly, deeper ones by a sample.

The sample is that of SHARDS (Waldspurger et al., FAST'15): a block belongs to it if the upper half of its key, which is
a hash, lies below a threshold, so all its accesses do, or none. A depth among sampled blocks, divided by the share that
is sampled, estimates the depth among all. When the tables are full, half of them stays for the newest blocks, whatever
their keys; of those below only the sample stays, and the threshold is halved until that is a quarter. So the few blocks
that everybody asks for, whose luck in the draw is most of the error of SHARDS, are never a matter of luck.

Parents are touched after their children and with each of them, so no block lies above its parent, sampled or not: "a
hit needs every block before it" holds for each block by its own depth. Compiled by numba. Knows nothing about tokens.
"""

from dataclasses import dataclass

import numpy as np

from tiers.books.compiled import Ints64, entry, making_part, part
from tiers.whatif.stack import NEVER, add, count_before

# Keys are sampled whose upper 32 bits are less than the threshold; this one samples all.
ALL = 1 << 32
# 7 MiB. Up to two million tokens in blocks of 16 everything is there, and the answer exact.
MAX_BLOCKS = 1 << 17
# Deeper than any block lies.
ANY_DEPTH = 1 << 62
# How a position is known: not at all (it is deep, or the block never was there), exactly, or for others, too.
UNKNOWN, EXACT, SAMPLED = 0, 1, 2
# Times below `THINNED` are those of blocks of which only a sample is there.
NOW, NUM_BLOCKS, THINNED, THRESHOLD, FIRST, DEEPEST = 0, 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Sample:
    """What a stack is made of again: keys int64 [n], oldest first; the first `num_thinned` lie below the threshold."""

    keys: Ints64
    num_thinned: int
    threshold: int


@dataclass(frozen=True)
class Found:
    """`positions` int64 [n]: a cache of more blocks than this would have had them, as in `stack_positions`.

    `kinds` int64 [n]: UNKNOWN, EXACT or SAMPLED; what is sampled stands for what is unknown, too.
    """

    positions: Ints64
    kinds: Ints64


class SampledStack:
    """Blocks by 64-bit keys, whose bits are evenly spread.

    The sample is of keys below `threshold`, or less. What lies under `deepest` blocks may be forgotten.
    """

    def __init__(self, max_blocks: int = MAX_BLOCKS, *, threshold: int = ALL, deepest: int = ANY_DEPTH) -> None:
        if not (max_blocks >= 8 and 1 <= threshold <= ALL and 1 <= deepest <= ANY_DEPTH):
            raise ValueError(
                f"A sample of {max_blocks} blocks below {threshold}, {deepest} deep, is none; expected at least 8, "
                f"1 to {ALL} and 1 to {ANY_DEPTH}."
            )
        self._state = np.array([0, 0, 0, ALL, threshold, deepest], np.int64)
        self._keys = np.zeros(max_blocks, np.int64)
        self._time_of = np.zeros(max_blocks, np.int64)
        self._block_at = np.zeros(2 * max_blocks, np.int64)
        self._tree = np.zeros(2 * max_blocks + 1, np.int64)
        self._index = np.zeros(1 << (3 * max_blocks // 2).bit_length(), np.int32)

    @property
    def rate(self) -> float:
        """The share of the deeper blocks that is there; 1 while nothing had to be left out."""
        return int(self._state[THRESHOLD]) / ALL

    @property
    def num_blocks(self) -> int:
        return int(self._state[NUM_BLOCKS])

    @property
    def num_bytes(self) -> int:
        tables = (self._keys, self._time_of, self._block_at, self._tree, self._index)
        return sum(table.nbytes for table in tables)

    def look_up(self, keys: Ints64) -> Found:
        """A request's blocks, from its first on. Changes nothing."""
        positions, kinds = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        look_up(keys, self._state, self._keys, self._time_of, self._index, self._tree, positions, kinds)
        return Found(positions, kinds)

    def touch(self, keys: Ints64, *, only_known: bool = False) -> None:
        """Makes them the newest, the last one first; those that are not there come in unless `only_known`."""
        touch(keys, only_known, self._state, self._keys, self._time_of, self._block_at, self._index, self._tree)

    def access(self, keys: Ints64, starts: Ints64) -> tuple[Found, int]:
        """Requests, as in `Accesses`: each is looked up, then touched, until the rate changes; how many were done."""
        positions, kinds = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        num_done = access(
            keys, starts, self._state, self._keys, self._time_of, self._block_at, self._index, self._tree, positions,
            kinds,
        )  # fmt: skip
        return Found(positions[: starts[num_done]], kinds[: starts[num_done]]), num_done

    def sample(self) -> Sample:
        is_last_use = np.zeros(int(self._state[NOW]), np.bool_)
        is_last_use[self._time_of[: self.num_blocks]] = True
        oldest_first = self._block_at[: len(is_last_use)][is_last_use]
        num_thinned = int(np.count_nonzero(is_last_use[: int(self._state[THINNED])]))
        return Sample(self._keys[oldest_first], num_thinned, int(self._state[THRESHOLD]))

    def restore(self, sample: Sample) -> None:
        """Into a new stack. Of one that was larger only the newest come back."""
        keys = sample.keys[-len(self._keys) :]
        self.touch(keys[::-1].copy())
        self._state[THINNED] = max(0, sample.num_thinned - (len(sample.keys) - len(keys)))
        self._state[THRESHOLD] = sample.threshold

    def check(self) -> None:
        """Raises AssertionError with a sentence if the tables disagree. Walks everything."""
        num, now, num_thinned = self.num_blocks, int(self._state[NOW]), int(self._state[THINNED])
        times = self._time_of[:num]
        assert len(np.unique(times)) == num, "a time of last use belongs to two blocks"
        assert (times < now).all(), "a time of last use has not been yet"
        assert np.array_equal(self._block_at[times], np.arange(num)), "a block is not found at its time of last use"
        thinned = self._keys[:num][times < num_thinned]
        assert (hashes(thinned) < self._state[THRESHOLD]).all(), "a deep block does not belong to the sample"
        assert sorted(self._index[self._index > 0].tolist()) == list(range(1, num + 1)), "the index has other blocks"
        found, state = np.zeros((2, num), np.int64), self._state.copy()
        state[DEEPEST] = ANY_DEPTH
        look_up(self._keys[:num], state, self._keys, self._time_of, self._index, self._tree, *found)
        assert ((found[0] < NEVER) & (found[1] != UNKNOWN)).all(), "a block is not found by its key"
        counts = np.zeros(len(self._block_at), np.int64)
        counts[times] = 1
        before = np.concatenate(([0], np.cumsum(counts)))
        assert [count_before(self._tree, time) for time in range(len(before))] == before.tolist(), (
            "the tree counts something else"
        )


def hashes(keys: Ints64) -> Ints64:
    """Of each key the half that says whether it is sampled."""
    return (keys >> 32) & 0xFFFFFFFF


@part
def _is_sampled(state: Ints64, key: int) -> bool:
    return bool((key >> 32) & 0xFFFFFFFF < state[THRESHOLD])


@part
def _place(known: Ints64, index: Ints64, key: int) -> int:
    """Where in the index the key is, or would come."""
    place = key & (len(index) - 1)
    while index[place] > 0 and known[index[place] - 1] != key:
        place = (place + 1) & (len(index) - 1)
    return place


@entry
def look_up(
    keys: Ints64, state: Ints64, known: Ints64, time_of: Ints64, index: Ints64, tree: Ints64, positions: Ints64,
    kinds: Ints64,
) -> None:  # fmt: skip
    """Fills `positions`, the deepest so far, and `kinds`.

    Of the deep blocks that lie above one, the share that is there is binomial: in the middle of the depths that give
    the same count lies (count + 1/2) / rate.
    """
    num_thinned = np.int64(count_before(tree, state[THINNED]))
    num_newest = state[NUM_BLOCKS] - num_thinned
    position = np.int64(0)
    for number in range(len(keys)):
        slot = np.int64(index[_place(known, index, keys[number])]) - 1
        if slot < 0:
            if _is_sampled(state, keys[number]):
                position = NEVER
                kinds[number] = SAMPLED
            else:
                kinds[number] = UNKNOWN
        elif time_of[slot] >= state[THINNED]:
            position = max(position, state[NUM_BLOCKS] - count_before(tree, time_of[slot] + 1))
            kinds[number] = EXACT
        else:
            num_above = num_thinned - count_before(tree, time_of[slot] + 1)
            scaled = (num_above * ALL + (ALL - state[THRESHOLD]) // 2) // state[THRESHOLD]
            position = max(position, num_newest + scaled)
            kinds[number] = SAMPLED
        if position >= state[DEEPEST]:
            position = NEVER
        positions[number] = position


@entry
def touch(
    keys: Ints64, only_known: bool, state: Ints64, known: Ints64, time_of: Ints64, block_at: Ints64, index: Ints64,
    tree: Ints64,
) -> None:  # fmt: skip
    for number in range(len(keys) - 1, -1, -1):
        place = _place(known, index, keys[number])
        if index[place] == 0 and only_known:
            continue
        if state[NOW] == len(block_at) or (index[place] == 0 and state[NUM_BLOCKS] == len(known)):
            _make_room(state, known, time_of, block_at, index, tree)
            place = _place(known, index, keys[number])
        slot = np.int64(index[place]) - 1
        if slot < 0:
            slot = state[NUM_BLOCKS]
            known[slot] = keys[number]
            index[place] = slot + 1
            state[NUM_BLOCKS] += 1
        else:
            add(tree, time_of[slot], -1)
        time_of[slot] = state[NOW]
        block_at[state[NOW]] = slot
        add(tree, state[NOW], 1)
        state[NOW] += 1


@entry
def access(
    keys: Ints64, starts: Ints64, state: Ints64, known: Ints64, time_of: Ints64, block_at: Ints64, index: Ints64,
    tree: Ints64, positions: Ints64, kinds: Ints64,
) -> int:  # fmt: skip
    threshold = state[THRESHOLD]
    for request in range(len(starts) - 1):
        first, end = starts[request], starts[request + 1]
        look_up(keys[first:end], state, known, time_of, index, tree, positions[first:end], kinds[first:end])
        touch(keys[first:end], False, state, known, time_of, block_at, index, tree)
        if state[THRESHOLD] != threshold:
            return request + 1
    return len(starts) - 1


@making_part
def _make_room(
    state: Ints64, known: Ints64, time_of: Ints64, block_at: Ints64, index: Ints64, tree: Ints64
) -> None:  # fmt: skip
    """Slots and times become 0, 1, 2 … in order of last use; tables that are full have room for a quarter again."""
    is_full = state[NUM_BLOCKS] == len(known)
    kept = np.empty(state[NUM_BLOCKS], np.int64)
    num_kept, num_thinned = 0, 0
    for time in range(state[NOW]):
        if time_of[block_at[time]] == time:
            kept[num_kept] = known[block_at[time]]
            num_kept += 1
            num_thinned += time < state[THINNED]
    if is_full:
        num_newest = min(num_kept - num_thinned, len(known) // 2)
        num_thinned, num_dropped = _thin(state, kept, num_kept - num_newest, len(known) // 4, num_newest)
        num_kept -= num_dropped
    index[:] = 0
    for slot in range(num_kept):
        known[slot] = kept[slot]
        time_of[slot] = block_at[slot] = slot
        index[_place(known, index, kept[slot])] = slot + 1
    for node in range(1, len(tree)):
        tree[node] = max(min(node, num_kept) - (node - (node & -node)), 0)
    state[NUM_BLOCKS] = state[NOW] = num_kept
    state[THINNED] = num_thinned


@part
def _thin(state: Ints64, kept: Ints64, num_deep: int, max_thinned: int, num_newest: int) -> tuple[int, int]:
    """Of the first, oldest `num_deep` of `kept` the sample stays, the others follow it; how many stay, and do not."""
    state[THRESHOLD] = min(state[THRESHOLD], state[FIRST])
    num_thinned = _sampled_of(state, kept, num_deep)
    # What is deeper than anybody asks for is forgotten first: with it the sample does not shrink for ever.
    share = state[THRESHOLD] / ALL
    num_thinned = _newest_of(kept, num_thinned, int(max(state[DEEPEST] - num_newest, 0) * share) + 1)
    while num_thinned > max_thinned and state[THRESHOLD] > 1:
        state[THRESHOLD] //= 2
        num_thinned = _sampled_of(state, kept, num_thinned)
    num_thinned = _newest_of(kept, num_thinned, max_thinned)  # keys whose upper halves are the same
    for number in range(num_newest):
        kept[num_thinned + number] = kept[num_deep + number]
    return num_thinned, num_deep - num_thinned


@part
def _sampled_of(state: Ints64, kept: Ints64, num_kept: int) -> int:
    num_sampled = 0
    for number in range(num_kept):
        if _is_sampled(state, kept[number]):
            kept[num_sampled] = kept[number]
            num_sampled += 1
    return num_sampled


@part
def _newest_of(kept: Ints64, num_kept: int, num_wanted: int) -> int:
    num_forgotten = max(num_kept - num_wanted, 0)
    for number in range(num_kept - num_forgotten):
        kept[number] = kept[number + num_forgotten]
    return num_kept - num_forgotten
