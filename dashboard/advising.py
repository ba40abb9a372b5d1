"""Which sizes of an engine's tiers are worth their price: a search over predictions. Pure; knows no database."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.predicting import Predictor
from dashboard.selectors.tier_sizes import TierSize
from tiers.whatif import advisor
from tiers.whatif.advisor import Choice

__all__ = ["TIMES", "Choice", "Front", "front_of"]

TIMES = {"mean": "mean TTFT", "p95": "TTFT p95"}
# By the number of tiers that have a price, so that no more than advisor.MAX_CHOICES are tried.
_SIZES_A_TIER = {1: 60, 2: 40, 3: 11, 4: 5}


@dataclass(frozen=True)
class Front:
    """A frontier, cheapest first, of sizes of `tiers`; `time_name` is what its seconds are, like "mean TTFT"."""

    tiers: Sequence[str]
    choices: Sequence[Choice]
    today: Choice
    time_name: str
    num_tried: int

    @property
    def knee(self) -> Choice | None:
        return advisor.knee(self.choices)

    def within_budget(self, budget: float) -> Choice | None:
        return advisor.within_budget(self.choices, budget)

    def within_seconds(self, seconds: float) -> Choice | None:
        return advisor.within_seconds(self.choices, seconds)

    @property
    def marks(self) -> dict[str, tuple[float, float]]:
        """Dollars and seconds of what is named on the chart."""
        named = {"today": self.today, "knee": self.knee}
        return {name: (choice.cost, choice.seconds) for name, choice in named.items() if choice}


def front_of(predictor: Predictor, kind: str) -> Front:
    """The frontier of a month's cost against the mean or p95 time to first token."""
    names = [tier.tier for tier in predictor.tiers]

    def evaluate(sizes: advisor.Sizes) -> Choice:
        by_tier = dict(zip(names, sizes, strict=True))
        hit = predictor.hit(by_tier)
        seconds = predictor.mean_ttft(hit) if kind == "mean" else predictor.p95_ttft(hit)
        dollars = sum(predictor.dollars(by_tier, computed=1.0 - sum(hit.values())).values())
        return Choice(sizes, tuple(hit.values()), dollars, seconds or 0.0)

    today = evaluate(tuple(tier.num_bytes for tier in predictor.tiers))
    tried = [today, *advisor.choices(_grids(predictor), evaluate)]
    return Front(names, advisor.frontier(tried), today, TIMES[kind], len(tried))


def _grids(predictor: Predictor) -> list[list[int]]:
    num_sizes = _SIZES_A_TIER[sum(tier.tier in predictor.prices.gib_month for tier in predictor.tiers)]
    return [
        _grid(tier, predictor, num_sizes) if tier.tier in predictor.prices.gib_month else [tier.num_bytes]
        for tier in predictor.tiers
    ]


def _grid(tier: TierSize, predictor: Predictor, num_sizes: int) -> list[int]:
    """No more than the machine has; gpu is never off, since attention reads from it."""
    least, most = predictor.range_of(tier)
    if tier.most_bytes is not None:
        most = max(least, min(most, tier.most_bytes))
    return advisor.grid(least if tier.tier == "gpu" else 0, tier.num_bytes, most, num_sizes)
