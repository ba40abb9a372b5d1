"""Hits at every capacity, and by tier of a hierarchy, from stack positions. Knows nothing about who asked."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tiers.names import WriteMode
from tiers.whatif.stack import NEVER

Ints = NDArray[np.int64]


class HitCurve:
    """Accesses by how deep they lie; `weights` count for each access: 1 for blocks, or its tokens.

    A growing array [deepest + 1] whatever the number of accesses: `add` may be called for millions at a time.
    """

    def __init__(self) -> None:
        self._weight_at = np.zeros(0, np.int64)
        self._cumulated: Ints | None = None
        self.total = 0

    def add(self, positions: Ints, weights: Ints | None = None) -> None:
        """`weights` int64 [A]; None for 1 each."""
        weights = np.ones(len(positions), np.int64) if weights is None else weights
        self.total += int(weights.sum())
        can_hit = positions != NEVER
        depths = positions[can_hit]
        if not len(depths):
            return
        size = max(len(self._weight_at), int(depths.max()) + 1)
        # bincount adds in float64: exact up to 2^53 tokens.
        added = np.bincount(depths, weights[can_hit], size).astype(np.int64)
        added[: len(self._weight_at)] += self._weight_at
        self._weight_at, self._cumulated = added, None

    def miss(self, weight: int) -> None:
        """What no cache could have served."""
        self.total += weight

    def hits(self, capacity: int | None) -> int:
        """What one LRU of that many blocks would have served; None is a cache without limit."""
        return self.at([capacity])[0]

    def at(self, capacities: Sequence[int | None]) -> list[int]:
        if self._cumulated is None:
            self._cumulated = np.concatenate(([0], np.cumsum(self._weight_at)))
        last = len(self._cumulated) - 1
        return [int(self._cumulated[last if c is None else min(max(c, 0), last)]) for c in capacities]

    def split(self, capacities: Sequence[int], mode: WriteMode) -> list[int]:
        """What each tier of a hierarchy would have served, fastest first.

        Exclusive tiers (write_back) cut one stack into pieces; with write_through each is a stack prefix of its own
        that a hit in a faster tier keeps in order, and serves what no faster tier has. Raises ValueError for others.
        """
        if mode is WriteMode.WRITE_SELECTIVE:
            raise ValueError("A tier that waits for hits is no part of one stack; ask for write_back or write_through.")
        if mode is WriteMode.WRITE_THROUGH:
            ends = np.maximum.accumulate(np.asarray(capacities, np.int64))
        else:
            ends = np.cumsum(np.asarray(capacities, np.int64))
        hits = self.at([int(end) for end in ends])
        return [after - before for before, after in zip([0, *hits], hits, strict=False)]
