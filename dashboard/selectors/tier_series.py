"""What tiers did, step by step: bytes copied, how long loads took, what failed, what was not worth loading. Reads only.

None where nothing was observed. A tier that no engine tells of is left out.
"""

from collections.abc import Collection, Mapping
from typing import Any

from dashboard.selectors.latency import histograms, quantiles
from dashboard.selectors.period import Period
from dashboard.selectors.store import Counters, Metric, counters_of, in_tier_order, sums

Values = list[int | None]
_HOUR, _DAY = 3_600, 86_400


def copied_bytes_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier: {"loaded", "stored"}}}: bytes a step."""
    names = {Metric.LOADED_BYTES: "loaded", Metric.STORED_BYTES: "stored"}
    series = counters_of((Metric.SCRAPES, *names), engine=engine, model_name=model_name)
    found = sums(series, period, "metric", "cache_tier")
    steps = _Steps(period, found.get((Metric.SCRAPES, ""), {}))
    tiers = _told(series, names)
    return {
        "starts": period.starts,
        "tiers": {
            tier: {name: steps.filled(found.get((metric, tier), {})) for metric, name in names.items()}
            for tier in tiers
        },
    }


def failures_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier: {"load", "store"}}}: copies that failed, a step."""
    series = counters_of((Metric.SCRAPES, Metric.TIER_ERRORS), engine=engine, model_name=model_name)
    found = sums(series, period, "cache_tier", "detail")
    steps = _Steps(period, found.get(("", ""), {}))
    return {
        "starts": period.starts,
        "tiers": {
            tier: {operation: steps.filled(found.get((tier, operation), {})) for operation in ("load", "store")}
            for tier in _told(series, (Metric.TIER_ERRORS,))
        },
    }


def skipped_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier: tokens}}: computed although the tier had them, because that was cheaper, a step."""
    series = counters_of((Metric.SCRAPES, Metric.SKIPPED_TOKENS), engine=engine, model_name=model_name)
    found = sums(series, period, "cache_tier")
    steps = _Steps(period, found.get(("",), {}))
    tiers = _told(series, (Metric.SKIPPED_TOKENS,))
    return {"starts": period.starts, "tiers": {tier: steps.filled(found.get((tier,), {})) for tier in tiers}}


def load_times_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "step_seconds", "tiers": {tier: {"p50", "p95", "count"}}}: seconds that the load of a block took.

    None without any. A month comes in whole days, those that it touches: 15 bounds a tier and engine in hours would be
    100,000 rows.
    """
    steps = period.in_steps_of(_DAY) if _HOUR < period.step_seconds < _DAY else period
    series = counters_of((Metric.LOAD_TIMES,), engine=engine, model_name=model_name)
    found = histograms(series, steps, {float(text) for text in series.values_list("detail", flat=True)})
    return {
        "starts": steps.starts,
        "step_seconds": steps.step_seconds,
        "tiers": {tier: quantiles(found[tier]) for tier in in_tier_order(found)},
    }


class _Steps:
    """Fills the steps of a period: 0 where something was observed and nothing counted, None where nobody looked."""

    def __init__(self, period: Period, observed: Mapping[int, int]) -> None:
        self._observed = [slot in observed for slot in range(len(period.starts))]

    def filled(self, amounts: Mapping[int, int]) -> Values:
        return [amounts.get(slot, 0) if is_seen else None for slot, is_seen in enumerate(self._observed)]


def _told(series: Counters, metrics: Collection[str]) -> list[str]:
    return in_tier_order(set(series.filter(metric__in=metrics).values_list("cache_tier", flat=True)))
