"""Which blocks of a match are worth their load: those that are cheaper to compute are left to the model.

A prefix must stay contiguous, so what is left out is the end of a match, cut where loading what comes before and
computing what comes after takes least together. Knows nothing about how the model's seconds are measured.
"""

import math
from collections.abc import Callable, Sequence

from tiers.level import Level
from tiers.load_cost import PROBE_BLOCKS
from tiers.names import LoadChoice
from tiers.node import Node

PrefillSeconds = Callable[[int, int], float]


def never_measured(position: int, num_tokens: int) -> float:
    """Of an engine that measures nothing: everything is worth its load."""
    return math.inf


class Worth:
    """`prefill_seconds(position, num_tokens)` is what computing so many prompt tokens from there on would take."""

    def __init__(self, levels: Sequence[Level], block_size: int, prefill_seconds: PrefillSeconds) -> None:
        self._levels = levels
        self._block_size = block_size
        self._prefill_seconds = prefill_seconds

    @property
    def reads_all(self) -> bool:
        return all(level.load is LoadChoice.ALWAYS for level in self._levels)

    def num_worth(self, hits: Sequence[Node]) -> int:
        """How many of the first blocks to read. Changes nothing: it may be asked again until there is room."""
        if self.reads_all:
            return len(hits)
        cut = self._cheapest_cut(hits)
        if cut < len(hits) and _level_of(hits[cut]).cost.is_stale:
            return min(len(hits), cut + PROBE_BLOCKS)
        return cut

    def leave_out(self, hits: Sequence[Node]) -> None:
        """A request was admitted without these, the end of its match."""
        if hits:
            _level_of(hits[0]).cost.decline()

    def _cheapest_cut(self, hits: Sequence[Node]) -> int:
        """From the last block back to the first that has to be read or whose load nobody has measured."""
        cut, saved, most = len(hits), 0.0, 0.0
        for index in reversed(range(len(hits))):
            level = _level_of(hits[index])
            if level.load is LoadChoice.ALWAYS or level.rank == 0 or level.cost.seconds is None:
                break
            saved += level.cost.seconds - self._prefill_seconds(index * self._block_size, self._block_size)
            if saved > most:
                cut, most = index, saved
        return cut


def _level_of(node: Node) -> Level:
    copy = node.fastest
    assert copy is not None
    return copy.level
