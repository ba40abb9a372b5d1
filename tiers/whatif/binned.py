"""Hits at any capacity, and by tier of a hierarchy, from counters of tokens by the capacity that serves them.

The counted form of `HitCurve` (Mattson et al., 1970): a few hundred integers that add up over time, instead of one a
depth. Exact at the bounds, linear between two of them. Plain Python, so that a web process can ask without numpy;
knows nothing about where the counters come from.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from tiers.names import WriteMode


@dataclass(frozen=True)
class BinnedCurve:
    """`tokens[i]` prompt tokens would have been hits of an LRU stack of more than `bounds[i - 1]`, at most `bounds[i]`.

    Capacities are in tokens (blocks × block size); `never_tokens` hit at none. Raises ValueError for bounds that do not
    grow, or counts that are negative or not as many as the bounds.
    """

    bounds: tuple[int, ...]
    tokens: tuple[int, ...]
    never_tokens: int

    def __post_init__(self) -> None:
        if any(before >= after for before, after in pairwise((0, *self.bounds))):
            raise ValueError("The bounds of a reuse curve have to grow from above 0.")
        if len(self.tokens) != len(self.bounds) or min((*self.tokens, self.never_tokens)) < 0:
            raise ValueError("A reuse curve needs one count of tokens, 0 or more, for each bound.")

    @cached_property
    def total(self) -> int:
        return self._up_to[-1] + self.never_tokens

    @cached_property
    def _up_to(self) -> tuple[int, ...]:
        """Hits at 0 and at each bound."""
        return tuple(accumulate(self.tokens, initial=0))

    def hits(self, capacity: int | None) -> int:
        """What one LRU of that many tokens would have served, rounded down; None is a cache without limit."""
        place = len(self.bounds) if capacity is None else bisect_left(self.bounds, max(capacity, 0))
        if capacity is None or place == len(self.bounds):
            return self._up_to[-1]
        below = self.bounds[place - 1] if place else 0
        inside = self.tokens[place] * (max(capacity, 0) - below) // (self.bounds[place] - below)
        return self._up_to[place] + inside

    def split(self, capacities: Sequence[int], modes: Sequence[WriteMode]) -> list[int]:
        """What each tier of a hierarchy would have served, fastest first; `modes` as the tiers are written to.

        See `depths`. Σ is what the deepest of them would have served alone.
        """
        return [self.hits(end) - self.hits(start) for start, end in depths(capacities, modes)]


def shaped(coarse: BinnedCurve, fine: BinnedCurve) -> BinnedCurve:
    """The counts of `coarse` at the bounds of `fine`: between two of its own they are spread as those of `fine` are.

    For the part of the traffic that is counted coarser: parts that are the whole at the coarse bounds stay so at all.
    Where `fine` counted nothing, evenly. Raises ValueError where a bound of `coarse` is none of `fine`.
    """
    if not set(coarse.bounds) <= set(fine.bounds):
        raise ValueError("The bounds of the coarser curve have to be among those of the finer one.")
    tokens: list[int] = []
    for end, whole in zip(coarse.bounds, coarse.tokens, strict=True):
        inside = fine.tokens[len(tokens) : fine.bounds.index(end) + 1]
        tokens += _spread(whole, inside if any(inside) else [1] * len(inside))
    beyond = [0] * (len(fine.bounds) - len(tokens))
    return BinnedCurve(fine.bounds, (*tokens, *beyond), coarse.never_tokens)


def _spread(whole: int, weights: Sequence[int]) -> list[int]:
    """Integers in these ratios whose sum is `whole`."""
    total = sum(weights)
    ends = [whole * part // total for part in accumulate(weights, initial=0)]
    return [after - before for before, after in pairwise(ends)]


def depths(capacities: Sequence[int], modes: Sequence[WriteMode]) -> list[tuple[int, int]]:
    """The stretch of the common LRU stack (from, to] that each tier serves, fastest first.

    An exclusive tier (write_back) goes on where the faster ones end. Each other one is a stack of its own that holds
    what was used last, and serves the part of it that no faster tier has. write_selective is no part of one stack: it
    is taken for write_through, which is an estimate.
    """
    stretches, end = [], 0
    for capacity, mode in zip(capacities, modes, strict=True):
        start, end = end, end + capacity if mode is WriteMode.WRITE_BACK else max(end, capacity)
        stretches.append((start, end))
    return stretches
