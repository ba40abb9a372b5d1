"""What was measured of one engine in a period, as far as other tier sizes can be predicted from it. Reads only."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from statistics import median

from django.db.models import Max

from dashboard.models import Series, Source
from dashboard.selectors.latency import Histogram, known_bounds, mean_seconds
from dashboard.selectors.period import Period
from dashboard.selectors.reuse import ReuseCurve, reuse_curve
from dashboard.selectors.store import Metric, grouped, series_of, totals_of
from dashboard.selectors.tier_costs import Costs, tier_costs

# A third of what the Tiers page reads.
_COSTS = (
    *(Metric.PROMPT_TOKENS, Metric.HIT_TOKENS, Metric.PREFILL_TOKENS, Metric.PREFILL_MICROSECONDS),
    *(Metric.LOAD_MICROSECONDS, Metric.ENTERED_TOKENS),
)


@dataclass(frozen=True)
class Measured:
    """`ttft` are answered requests by the slowest tier they read ("" = none) and upper bound in seconds.

    `mean_ttft_seconds` is None where nobody tells it; `observed_seconds` is how much of the period was.
    """

    curve: ReuseCurve
    costs: Costs
    computed_tokens: int
    ttft: Mapping[str, Histogram]
    mean_ttft_seconds: float | None
    observed_seconds: float

    @property
    def num_answered(self) -> int:
        return sum(sum(histogram.values()) for histogram in self.ttft.values())

    @property
    def hit_shares(self) -> dict[str, float]:
        """Of the prompt tokens, by tier; empty where nothing was asked."""
        prompt = self.costs.prompt_tokens
        return {tier: told.hit_tokens / prompt for tier, told in self.costs.tiers.items()} if prompt else {}


def measured(period: Period, *, engine: str, model_name: str | None = None, now: float) -> Measured:
    series = series_of(
        (Metric.COMPUTED_TOKENS, Metric.TTFT, Metric.TTFT_MICROSECONDS), engine=engine, model_name=model_name
    )
    empty = dict.fromkeys(known_bounds(), 0)
    ttft: dict[str, dict[float, int]] = defaultdict(empty.copy)
    sums: dict[str, int] = defaultdict(int)
    for (metric, tier, detail), value in totals_of(series, period, "metric", "cache_tier", "detail").items():
        sums[metric] += value
        if metric == Metric.TTFT:
            ttft[tier][float(detail)] += value
    return Measured(
        curve=reuse_curve(period, engine=engine, model_name=model_name),
        costs=tier_costs(period, engine=engine, model_name=model_name, metrics=_COSTS),
        computed_tokens=sums[Metric.COMPUTED_TOKENS],
        ttft=ttft,
        mean_ttft_seconds=mean_seconds(sums[Metric.TTFT_MICROSECONDS], sums[Metric.TTFT]),
        observed_seconds=_observed_seconds(period, engine, model_name, now),
    )


def of_tenant(
    whole: Measured, curve: ReuseCurve, period: Period, tenant: str, *, engine: str, model_name: str | None = None
) -> Measured:
    """What was counted of one tenant's prompts; times are measured of the whole engine only."""
    series = series_of(
        (Metric.TENANT_PROMPT_TOKENS, Metric.TENANT_COMPUTED_TOKENS, Metric.TENANT_HIT_TOKENS),
        engine=engine,
        model_name=model_name,
    )
    told = totals_of(series.filter(detail=tenant), period, "metric", "cache_tier")
    tiers = {
        tier: replace(cost, hit_tokens=told.get((Metric.TENANT_HIT_TOKENS, tier), 0))
        for tier, cost in whole.costs.tiers.items()
    }
    return replace(
        whole,
        curve=curve,
        costs=replace(whole.costs, prompt_tokens=told.get((Metric.TENANT_PROMPT_TOKENS, ""), 0), tiers=tiers),
        computed_tokens=told.get((Metric.TENANT_COMPUTED_TOKENS, ""), 0),
        ttft={},
        mean_ttft_seconds=None,
    )


def last_read_at(engine: str) -> datetime | None:
    """When the source behind it was last read: what is stored of it is the same until it is read again."""
    sources = Series.objects.filter(metric=Metric.SCRAPES, engine=engine).values("source")
    newest: datetime | None = Source.objects.filter(pk__in=sources).aggregate(at=Max("last_ok_at"))["at"]
    return newest


def engines_with_curves() -> list[str]:
    """Replays are none: whoever wants one chooses it."""
    told = series_of((Metric.REUSE_TOKENS,), engine=None, model_name=None).order_by("engine")
    return list(told.values_list("engine", flat=True).distinct())


def _observed_seconds(period: Period, engine: str, model_name: str | None, now: float) -> float:
    """The steps in which it was looked at, the one that still fills as far as it is."""
    scrapes = series_of((Metric.SCRAPES,), engine=engine, model_name=model_name)
    parts = dict.fromkeys(scrapes.values_list("pk", flat=True), 0)
    slots = sorted({slot for slot, *_ in grouped(parts, period)})
    return covered_seconds([period.start + slot * period.step_seconds for slot in slots], period.step_seconds, now)


def covered_seconds(starts: Sequence[float], step_seconds: float, now: float) -> float:
    """How long these observed steps, oldest first, stand for.

    An engine that is read less often than every step has what it did meanwhile in one of several, and what it did
    while one reading failed in the next: each step stands for the time up to the next one. Where that is more than
    twice as long as usual it was not looked at.
    """
    gaps = [later - start for start, later in pairwise(starts)]
    usual = max(step_seconds, median(gaps or [step_seconds]))
    newest = (min(usual, max(0.0, now - start)) for start in starts[-1:])
    return sum(gap if gap <= 2 * usual else usual for gap in gaps) + sum(newest)
