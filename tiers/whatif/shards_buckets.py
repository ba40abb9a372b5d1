"""Tokens by the capacity that would have served them, in buckets that only grow. Knows nothing about keys or stacks.

What is known exactly is counted where it belongs. What is not is counted as those blocks were that are sampled, and by
the newest of them: their shares, times a number that is known exactly. The correction that is published with SHARDS
(SHARDS_adj, FAST'15, section 3.2: what a sample has too much or too little belongs to the smallest capacity) is for
samples that may lack the hottest blocks, and takes away again; here they are never left out.
"""

from dataclasses import dataclass

import numpy as np

from tiers.books.compiled import Ints64, entry
from tiers.whatif.shards import EXACT, SAMPLED, Found

PER_OCTAVE = 4
SMALLEST_TOKENS = 8
# 268 million: 6 TB of SmolLM2-135M's keys and values, 86 TB of a 70B model's.
LARGEST_TOKENS = 1 << 28
# What is counted for many is counted coarser: an octave is one bound, and what lies below the first one, too.
COARSE_TOKENS = 1 << 10
# By so many sampled blocks the shares of those that are not known are told: older ones weigh ever less.
NUM_RECENT = 256


def capacity_bounds(block_size: int) -> tuple[int, ...]:
    """Tokens, from `block_size` on: bounds of one list for all engines, four an octave."""
    num_steps = PER_OCTAVE * (LARGEST_TOKENS // SMALLEST_TOKENS).bit_length()
    bounds = {round(SMALLEST_TOKENS * 2 ** (step / PER_OCTAVE)) for step in range(num_steps)}
    return tuple(sorted(bound for bound in bounds if block_size <= bound <= LARGEST_TOKENS))


def coarse_bounds(block_size: int) -> tuple[int, ...]:
    """Those of `capacity_bounds` that are powers of two, from COARSE_TOKENS on."""
    return tuple(each for each in capacity_bounds(block_size) if each >= COARSE_TOKENS and not each & (each - 1))


@dataclass(frozen=True)
class ReuseCounts:
    """`tokens[i]` would have been hits from `bounds[i]` tokens of capacity on, and not with the bound before.

    The last count is of those that no capacity serves. Without bounds nothing is counted. `sample_rate` is 1 where the
    counts are exact.
    """

    bounds: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    sample_rate: float = 1.0


class CapacityBuckets:
    """Of blocks of `block_size` tokens; at `bounds`, in tokens, or those of `capacity_bounds`."""

    def __init__(self, block_size: int, bounds: tuple[int, ...] | None = None) -> None:
        self.bounds = capacity_bounds(block_size) if bounds is None else bounds
        self._block_size = block_size
        self._bound_blocks = np.array(self.bounds, np.int64) // block_size
        self._paid = np.zeros(len(self.bounds) + 1, np.int64)
        self._owed = np.zeros(len(self.bounds) + 1, np.float64)
        self._recent = np.zeros(len(self.bounds) + 1, np.float64)
        self._num_unknown = 0
        self._unpaid = 0

    def add(self, found: Found, rate: float, other_tokens: int) -> None:
        """A request's blocks, and its tokens that could not have been hits whatever the capacity."""
        num_known = book(
            found.positions, found.kinds, rate == 1, self._block_size, self._bound_blocks, self._owed, self._recent
        )
        self._num_unknown += len(found.kinds) - num_known
        self._owed[-1] += other_tokens
        self._unpaid += len(found.kinds) * self._block_size + other_tokens

    def counts(self) -> tuple[int, ...]:
        """All tokens that were added until now, by bucket; whole ones, and none is ever taken back."""
        if self._unpaid:
            self._share_out()
            whole = np.floor(np.maximum(self._owed, 0)).astype(np.int64)
            whole = np.diff(np.minimum(np.cumsum(whole), self._unpaid), prepend=0)
            largest_rests = np.argsort(whole - self._owed)[: self._unpaid - whole.sum()]
            whole[largest_rests] += 1
            self._paid += whole
            self._owed -= whole
            self._unpaid = 0
        return tuple(self._paid.tolist())

    def _share_out(self) -> None:
        """What is not known counts as what was sampled; before anything was, as never there."""
        num_recent = self._recent.sum()
        if num_recent:
            self._owed += self._recent * (self._num_unknown * self._block_size / num_recent)
            self._recent *= min(1.0, NUM_RECENT / num_recent)
        else:
            self._owed[-1] += self._num_unknown * self._block_size
        self._num_unknown = 0

    def check(self) -> None:
        """Raises AssertionError where tokens were lost or made."""
        unknown = self._num_unknown * self._block_size
        assert abs(self._owed.sum() + unknown - self._unpaid) < 1e-3, "what is owed is not what is still to be paid"
        assert (self._paid >= 0).all(), "a bucket was taken from"


@entry
def book(
    positions: Ints64, kinds: Ints64, is_exact: bool, block_size: int, bound_blocks: Ints64, owed: Ints64,
    recent: Ints64,
) -> int:  # fmt: skip
    """Books what is known to its bucket, the first bound of more blocks than its position; returns how many."""
    num_known = 0
    for number in range(len(positions)):
        bucket = np.searchsorted(bound_blocks, positions[number], side="right")
        if kinds[number] == SAMPLED:
            recent[bucket] += 1
        if kinds[number] == EXACT or (is_exact and kinds[number] == SAMPLED):
            owed[bucket] += block_size
            num_known += 1
    return num_known
