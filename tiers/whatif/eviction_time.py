"""The hits of smaller LRU caches, estimated from how long a cache's blocks wait to be used again.

AET (Hu et al., *Kinetic Modeling of Data Eviction in Cache*, USENIX ATC'16): a block that is not used falls through an
LRU stack by one place for each access whose own last use lies longer ago. With P(t), the share of accesses that come
more than t after the last use of their block, a cache of c = ∫₀ᵀ P(t) dt accesses evicts what was idle for T. How fast
accesses come need not be known where one size with its eviction time is. Knows nothing about who measured.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf

from tiers.whatif.binned import BinnedCurve


@dataclass(frozen=True)
class Waits:
    """What one cache of `capacity` tokens did: of `prompt_tokens` it served `hit_tokens`.

    `gaps` are uses of a block by the seconds since its last one: upper bound (the last may be infinite) → uses above
    the bound before. `idle_seconds` is how long evicted blocks were not used, on average.
    """

    gaps: Mapping[float, int]
    idle_seconds: float
    capacity: int
    prompt_tokens: int
    hit_tokens: int


def curve_below(waits: Waits) -> BinnedCurve:
    """Hits of LRU caches up to `capacity`, where they are those that were measured; of larger ones nothing is known.

    Uses after a gap within one bucket are spread evenly over it. Raises ValueError where nothing was measured.
    """
    if waits.idle_seconds <= 0 or waits.capacity <= 0 or sum(waits.gaps.values()) <= 0:
        raise ValueError("No gaps, no eviction times or no size were measured.")
    bounds: list[int] = []
    tokens: list[int] = []
    counted = 0
    stack = _Stack(waits)
    whole = stack.depth(waits.idle_seconds)
    for bound, hits in stack.hits_by_gap:
        depth = round(waits.capacity * stack.depth(bound) / whole)
        if 0 < depth < waits.capacity and (not bounds or depth > bounds[-1]):
            bounds.append(depth)
            tokens.append(hits - counted)
            counted = hits
    bounds.append(waits.capacity)
    tokens.append(waits.hit_tokens - counted)
    return BinnedCurve(tuple(bounds), tuple(tokens), waits.prompt_tokens - waits.hit_tokens)


class _Stack:
    """How deep a block lies that was not used for some time, up to a factor."""

    def __init__(self, waits: Waits) -> None:
        uses, share = accumulate(count for _, count in sorted(waits.gaps.items())), 1 / max(waits.prompt_tokens, 1)
        num_uses = sum(waits.gaps.values())
        # Tokens whose block had been used at most so many seconds before: the gaps tell which part of the hits.
        told = zip(sorted(waits.gaps), (waits.hit_tokens * below // num_uses for below in uses), strict=True)
        self.hits_by_gap = [(bound, hits) for bound, hits in told if bound < inf]
        within = [(0.0, 0.0), *((bound, hits * share) for bound, hits in self.hits_by_gap)]
        self._times = [bound for bound, _ in within]
        self._later = [1.0 - hits for _, hits in within]  # P(t) at these times, straight between them
        self._depths = [0.0]
        for (start, p), (end, q) in pairwise(zip(self._times, self._later, strict=True)):
            self._depths.append(self._depths[-1] + (end - start) * (p + q) / 2)

    def depth(self, seconds: float) -> float:
        """∫ P(t) dt up to there."""
        place = bisect_left(self._times, seconds)
        if place == len(self._times):
            return self._depths[-1] + (seconds - self._times[-1]) * self._later[-1]
        if not place:
            return 0.0
        start, p = self._times[place - 1], self._later[place - 1]
        part = (seconds - start) / (self._times[place] - start)
        return self._depths[place - 1] + (seconds - start) * (p + (p + (self._later[place] - p) * part)) / 2
