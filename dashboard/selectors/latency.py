"""Time to first token by the slowest tier read, from stored histogram increments. Reads only."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dashboard.models import Series
from dashboard.selectors.period import Period
from dashboard.selectors.store import Counters, Metric, counters_of, sums

NONE_READ = "none"
Histogram = Mapping[float, int]  # upper bound in seconds → requests that fell into it (not cumulative)


def ttft_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "tiers": {tier or "none": {"p50", "p95", "count"}}}: seconds, None where no request was answered."""
    series = counters_of((Metric.TTFT,), engine=engine, model_name=model_name)
    told = {tier or NONE_READ: steps for tier, steps in histograms(series, period, known_bounds()).items()}
    return {"starts": period.starts, "tiers": {tier: quantiles(told[tier]) for tier in sorted(told)}}


def known_bounds() -> list[float]:
    """Every bound that any engine tells. A stored bucket never counted nothing, but where it begins is needed too."""
    details = Series.objects.filter(metric=Metric.TTFT).values_list("detail", flat=True).distinct()
    return sorted(map(float, details))


def histograms(series: Counters, period: Period, bounds: Iterable[float]) -> dict[str, list[Histogram]]:
    """One histogram a step for each tier that the series name; where there is any, every bound is in it."""
    empty = dict.fromkeys(bounds, 0)
    found: dict[str, dict[int, dict[float, int]]] = defaultdict(lambda: defaultdict(empty.copy))
    for (tier, bound), counts in sums(series, period, "cache_tier", "detail").items():
        for slot, count in counts.items():
            found[tier][slot][float(bound)] += count
    return {tier: [slots.get(slot, {}) for slot in range(len(period.starts))] for tier, slots in found.items()}


def quantiles(steps: Sequence[Histogram]) -> dict[str, list[float | None] | list[int]]:
    return {
        "p50": [quantile(0.5, each) for each in steps],
        "p95": [quantile(0.95, each) for each in steps],
        "count": [sum(each.values()) for each in steps],
    }


def quantile(share: float, histogram: Mapping[float, float]) -> float | None:
    """As PromQL's histogram_quantile: linear within a bucket, the highest finite bound for what lies above all of them.

    None for an empty histogram; a histogram that was weighed has parts of requests.
    """
    total = sum(histogram.values())
    if total <= 0:
        return None
    wanted, below, lower = share * total, 0.0, 0.0
    for bound, count in sorted(histogram.items()):
        if below + count >= wanted and count > 0:
            return lower if math.isinf(bound) else lower + (bound - lower) * (wanted - below) / count
        below, lower = below + count, bound
    return lower


def mean_seconds(microseconds: int, num_answered: int) -> float | None:
    """None where nothing was answered, or nobody told how long it took."""
    return microseconds / num_answered / 1e6 if num_answered and microseconds else None
