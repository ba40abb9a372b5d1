"""Traffic of a fleet, reckoned: what each engine's counters stand at after so many scrapes. Knows no store.

Six series an engine say where prompt tokens came from: computed, or one of five tiers (what an engine does not tell is
`unattributed`). Every one of them moves in nearly every scrape, as at the busiest hour: neither store has it easy.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

STEP = 10  # seconds between scrapes
TIERS = ("gpu", "cpu", "disk", "remote", "unattributed")
ORIGINS = ("computed", *TIERS)
_MEAN_TOKENS = (3_000, 5_000, 2_000, 800, 400, 100)
_PERIOD = 8_640  # scrapes: a day, then it repeats
_SEED = 4

Facts = tuple[tuple[str, str, str], ...]  # metric, cache_tier, the name that it is scraped under
HITS = "tierscope_cached_prompt_tokens_total"
FACTS: Facts = (
    ("prompt_tokens", "", "tierscope_prompt_tokens_total"),
    ("computed_tokens", "", "tierscope_computed_prompt_tokens_total"),
    *(("hit_tokens", tier, HITS) for tier in TIERS),
)
Integers = npt.NDArray[np.int64]


class Origins:
    """Of engine number `engine`; all are alike, each begins its day at another time."""

    def __init__(self, engine: int) -> None:
        self._offset = engine * 97 % _PERIOD

    def counters(self, scrapes: Integers) -> Integers:
        """One row a scrape, one column a fact: what its counters stand at then, in tokens."""
        at = scrapes + self._offset
        table = _totals.sums
        hits = at[:, None] // _PERIOD * table[-1] + table[at % _PERIOD] - table[self._offset]
        return np.concatenate([hits.sum(axis=1, keepdims=True), hits], axis=1)

    def text(self, scrape: int, engine: str) -> str:
        """As an engine tells it."""
        values = self.counters(np.array([scrape]))[0]
        return "".join(
            f"{name}{{{labels(engine, tier)}}} {value}\n" for (_, tier, name), value in zip(FACTS, values, strict=True)
        )


def labels(engine: str, tier: str) -> str:
    return f'engine="{engine}",model_name="m"' + (f',cache_tier="{tier}"' if tier else "")


class _Totals:
    @cached_property
    def sums(self) -> Integers:
        """Row n: tokens of the first n scrapes of a day, by origin."""
        rng = np.random.default_rng(_SEED)
        tokens = rng.exponential(_MEAN_TOKENS, (_PERIOD, len(ORIGINS))).astype(np.int64)
        return np.concatenate([np.zeros((1, len(ORIGINS)), np.int64), tokens.cumsum(axis=0)])


_totals = _Totals()
