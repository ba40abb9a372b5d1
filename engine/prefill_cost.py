"""What computing prompt tokens takes at each position, from the steps that did: attention makes later ones dearer.

Knows nothing about blocks or tiers.
"""

import math

from engine.scheduler import Plan
from engine.stats import MIN_PREFILL_TOKENS

# Positions 0–255, 256–511, 512–1,023 and so on to 2²⁴: within a factor of two attention's share changes little.
FIRST_TOKENS = 256
NUM_RANGES = 17
# Half of what is known of a range is forgotten after about 2,800 tokens there.
TOKENS_TO_FORGET = 4096


class PrefillCost:
    """Running means of seconds a token, one for each range of positions."""

    def __init__(self) -> None:
        self._seconds: list[float | None] = [None] * NUM_RANGES

    def ran(self, plan: Plan) -> None:
        """A step's seconds are shared by its tokens. Short steps tell what a step costs, not what tokens do."""
        if plan.num_prefill < MIN_PREFILL_TOKENS:
            return
        seconds = plan.seconds / plan.num_tokens
        for chunk in plan.chunks:
            if chunk.is_prefill:
                self._observe(_range_of(chunk.start + chunk.length // 2), chunk.length, seconds)

    def seconds(self, position: int, num_tokens: int) -> float:
        """What computing so many tokens from there on would take; infinite where nothing was ever measured.

        A range without a measurement is taken for the nearest shorter one, or for the shortest that has one.
        """
        at = _range_of(position + num_tokens // 2)
        shorter_first = [*reversed(self._seconds[: at + 1]), *self._seconds[at + 1 :]]
        known = next((seconds for seconds in shorter_first if seconds is not None), math.inf)
        return known * num_tokens

    def _observe(self, at: int, num_tokens: int, seconds: float) -> None:
        before = self._seconds[at]
        weight = 1.0 if before is None else min(1.0, num_tokens / TOKENS_TO_FORGET)
        self._seconds[at] = (before or 0.0) * (1 - weight) + seconds * weight


def _range_of(position: int) -> int:
    return min((position // FIRST_TOKENS).bit_length(), NUM_RANGES - 1)
