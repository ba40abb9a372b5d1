"""How many tokens lay in each tier, and how many could. Reads only."""

from typing import Any

from dashboard.selectors.gauges import gauges_of, means
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, Sums, in_tier_order

_NAMES = {Metric.RESIDENT_TOKENS: "resident", Metric.CAPACITY_TOKENS: "capacity"}


def residency_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier: {"resident", "capacity"}}}: mean tokens a step, None where nothing was observed.

    Engines add up: each one's mean over the step, then their sum.
    """
    gauges = gauges_of(_NAMES, period, engine=engine, model_name=model_name)
    found = means(gauges, period, "cache_tier", "metric")
    starts = period.starts
    tiers = in_tier_order({tier for tier, _ in found})
    return {"starts": starts, "tiers": {tier: _pair(found, tier, len(starts)) for tier in tiers}}


def _pair(found: Sums, tier: str, num_steps: int) -> dict[str, list[int | None]]:
    return {name: [found[tier, metric].get(slot) for slot in range(num_steps)] for metric, name in _NAMES.items()}
