"""Which sizes of an engine's tiers are worth their price: a search over predictions. Pure; knows no database."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.policy_words import in_words
from dashboard.predicting import Predictor, Shares
from dashboard.selectors.policy_search import Finding, today
from dashboard.selectors.tier_sizes import TierSize
from tiers.whatif import advisor
from tiers.whatif.advisor import Choice

__all__ = ["TIMES", "Choice", "Front", "front_of", "hit_of", "sizes_to_try"]

TIMES = {"mean": "mean TTFT", "p95": "TTFT p95"}
# By the number of tiers that have a price, so that no more than advisor.MAX_CHOICES are tried.
_SIZES_A_TIER = {1: 60, 2: 40, 3: 11, 4: 5}


@dataclass(frozen=True)
class Front:
    """A frontier, cheapest first, of sizes of `tiers`; `time_name` is what its seconds are, like "mean TTFT".

    `num_setups` of the `num_tried` were with other policies or write modes than today's.
    """

    tiers: Sequence[str]
    choices: Sequence[Choice]
    today: Choice
    time_name: str
    num_tried: int
    num_setups: int = 0

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


def front_of(predictor: Predictor, kind: str, findings: Sequence[Finding] = ()) -> Front:
    """The frontier of a month's cost against the mean or p95 time to first token.

    With `findings` also of other policies and write modes, at the sizes at which they were tried.
    """
    names = [tier.tier for tier in predictor.tiers]

    def choice(sizes: advisor.Sizes, hit: Shares, setup: str = "") -> Choice:
        by_tier = dict(zip(names, sizes, strict=True))
        seconds = predictor.mean_ttft(hit) if kind == "mean" else predictor.p95_ttft(hit)
        dollars = sum(predictor.dollars(by_tier, computed=1.0 - sum(hit.values())).values())
        return Choice(sizes, tuple(hit.values()), dollars, seconds or 0.0, setup)

    def evaluate(sizes: advisor.Sizes) -> Choice:
        return choice(sizes, predictor.hit(dict(zip(names, sizes, strict=True))))

    as_set = today(predictor.tiers)
    others = [
        choice(tuple(each.sizes[name] for name in names), hit_of(predictor, each), in_words(names, each.setup, as_set))
        for each in findings
    ]
    now = evaluate(tuple(tier.num_bytes for tier in predictor.tiers))
    # Where today's tiers are not LRU, what was found for them says more than the curve.
    now = next((each for each in others if each.sizes == now.sizes and not each.setup), now)
    tried = [now, *advisor.choices(_grids(predictor), evaluate), *others]
    num_setups = sum(bool(each.setup) for each in others)
    return Front(names, advisor.frontier(tried), now, TIMES[kind], len(tried), num_setups)


def hit_of(predictor: Predictor, finding: Finding) -> dict[str, float]:
    """What the curve predicts for the sizes, and what policies and write modes were found to change of it."""
    hit = {
        tier: min(max(share + finding.change[tier], 0.0), 1.0) for tier, share in predictor.hit(finding.sizes).items()
    }
    total = sum(hit.values())
    return hit if total <= 1.0 else {tier: share / total for tier, share in hit.items()}


def sizes_to_try(predictor: Predictor, front: Front | None) -> list[dict[str, int]]:
    """At which policies are worth trying: today's, the knee, and some along the frontier."""
    if front is None:
        return [predictor.today]
    last = len(front.choices) - 1
    places = [0, last, last // 2]  # the cheapest, the fastest, and one between
    along = [*([front.knee] if front.knee else []), *(front.choices[place] for place in places)]
    found = [predictor.today, *(dict(zip(front.tiers, choice.sizes, strict=True)) for choice in along)]
    return [sizes for place, sizes in enumerate(found) if sizes not in found[:place]]


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
