"""How many tokens lay in each tier, and how many could. Reads only."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Sum

from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, buckets, in_tier_order

_NAMES = {Metric.RESIDENT_TOKENS.value: "resident", Metric.CAPACITY_TOKENS.value: "capacity"}


def residency_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier: {"resident", "capacity"}}}: mean tokens a step, None where nothing was observed.

    Engines add up: each one's mean over the step, then their sum.
    """
    rows = buckets(period, _NAMES, engine=engine, model_name=model_name)
    means = (
        rows.annotate(slot=(F("start_at") - period.start) / period.step_seconds)
        .values_list("slot", "series__cache_tier", "series__metric", "series_id")
        .annotate(Sum("value"), Sum("num_samples"))
    )
    found: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for slot, tier, metric, _, value, num_samples in means:
        found[tier, _NAMES[metric]][slot] += round(value / num_samples)
    starts = period.starts
    tiers = in_tier_order({tier for tier, _ in found})
    return {"starts": starts, "tiers": {tier: _pair(found, tier, len(starts)) for tier in tiers}}


def _pair(found: Mapping[tuple[str, str], dict[int, int]], tier: str, num_steps: int) -> dict[str, list[int | None]]:
    return {name: [found[tier, name].get(slot) for slot in range(num_steps)] for name in ("resident", "capacity")}
