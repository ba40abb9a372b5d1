"""The hit rates of a recorded trace from a sample of it. Knows nothing about files or engines."""

import numpy as np
from numpy.typing import NDArray

from tiers.whatif.accesses import Accesses
from tiers.whatif.curve import HitCurve
from tiers.whatif.shards import ALL, EXACT, SAMPLED, Found, SampledStack
from tiers.whatif.stack import CHUNK_ACCESSES

# Of these half is for the newest blocks, the other for the sample of those below.
TRACE_BLOCKS = 1 << 16


class SampledHits:
    """`HitCurve`, where some of it is a sample. Weights as there: 1 for blocks, or tokens."""

    def __init__(self) -> None:
        self._known, self._sampled = HitCurve(), HitCurve()
        self._num_unknown = 0

    def add(self, found: Found, weights: NDArray[np.int64], rate: float) -> None:
        is_known = (found.kinds == EXACT) | (rate == 1)
        is_sampled = ~is_known & (found.kinds == SAMPLED)
        self._known.add(found.positions[is_known], weights[is_known])
        stands_for = np.rint(weights[is_sampled] / rate).astype(np.int64)
        self._sampled.add(found.positions[is_sampled], stands_for)
        self._num_unknown += int(weights[~is_known].sum())

    def miss(self, weight: int) -> None:
        """What no cache could have served."""
        self._known.miss(weight)

    @property
    def total(self) -> int:
        return self._known.total + self._num_unknown

    def rates(self, capacities: list[int | None]) -> list[float]:
        """By blocks of one LRU cache; None is one without limit."""
        share = self._num_unknown / max(self._sampled.total, 1)
        hits = zip(self._known.at(capacities), self._sampled.at(capacities), strict=True)
        return [(known + sampled * share) / max(self.total, 1) for known, sampled in hits]


def sampled_hits(accesses: Accesses, stack: SampledStack) -> tuple[SampledHits, SampledHits]:
    """By blocks and by tokens. Blocks are touched from the last to the first."""
    blocks, tokens = SampledHits(), SampledHits()
    keys, starts = hashed(accesses.block_ids), accesses.starts
    first = 0
    while first < accesses.num_requests:
        last = max(int(np.searchsorted(starts, starts[first] + CHUNK_ACCESSES, side="right")) - 1, first + 1)
        rate, begin = stack.rate, starts[first]
        found, num_done = stack.access(keys[begin : starts[last]], starts[first : last + 1] - begin)
        part = slice(begin, begin + len(found.kinds))
        blocks.add(found, accesses.is_asked[part].astype(np.int64), rate)
        tokens.add(found, accesses.num_tokens[part], rate)
        first += num_done
    tokens.miss(accesses.never_tokens)
    return blocks, tokens


def trace_stack(rate: float, max_blocks: int = TRACE_BLOCKS) -> SampledStack:
    """Raises ValueError for a rate that is none."""
    if not 0 < rate <= 1:
        raise ValueError(f"The sample rate is {rate:g}; expected more than 0 and at most 1, like 0.01.")
    return SampledStack(max_blocks, threshold=max(1, round(ALL * rate)))


def hashed(block_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """64 bits for each id, evenly spread, another for each: splitmix64's end (Steele, Lea & Flood, OOPSLA'14)."""
    bits = block_ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)
