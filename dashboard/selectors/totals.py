"""A period's sums, beside those of the period before. Reads only."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from dashboard.selectors.latency import known_bounds, quantile
from dashboard.selectors.period import Period
from dashboard.selectors.spans import span_sums
from dashboard.selectors.store import Metric, counters_of, in_tier_order, names_of

_COUNTS = (Metric.PROMPT_TOKENS, Metric.COMPUTED_TOKENS, Metric.GENERATED_TOKENS, Metric.REQUESTS, Metric.PREEMPTIONS)
_HITS = (Metric.HIT_TOKENS, Metric.COMPUTED_TOKENS)  # either tells what was hit; with neither there is no hit rate


@dataclass
class _Sums:
    """What one GROUP BY found, sorted out."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    hits: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    ttft: dict[float, int] = field(default_factory=lambda: defaultdict(int))
    told: set[str] = field(default_factory=set)  # metrics that any of the engines has ever told

    def count(self, metric: str) -> int | None:
        """Where nothing was asked and nothing hit, nothing else was counted either, told or not."""
        is_idle = not self.counts[Metric.PROMPT_TOKENS] and not any(self.hits.values())
        return self.counts[metric] if metric in self.told or is_idle else None


def totals(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"prompt_tokens", "computed_tokens", "hit_tokens": {tier}, "generated_tokens", "requests", "finish_reasons",
    "preemptions", "hit_rate", "ttft_p50", "ttft_p95", "num_looks", "is_observed", "previous": the
    same, or None where unobserved}. A count is None where no engine tells it, which is not 0: many that are watched
    tell tokens alone; so is "hit_rate" where nothing was asked, or no engine tells what it hit.
    """
    now = _totals(period, engine, model_name)
    previous = _totals(period.before(), engine, model_name)
    return {**now, "previous": previous if previous["is_observed"] else None}


def _totals(period: Period, engine: str | None, model_name: str | None) -> dict[str, Any]:
    found = _read(period, engine, model_name)
    prompt = found.counts[Metric.PROMPT_TOKENS]
    ttft = {**dict.fromkeys(known_bounds(), 0), **found.ttft}
    return {
        **{str(metric): found.count(metric) for metric in _COUNTS},
        "hit_tokens": {tier: found.hits[tier] for tier in in_tier_order(found.hits)},
        "finish_reasons": found.reasons,
        "hit_rate": sum(found.hits.values()) / prompt if prompt > 0 and not found.told.isdisjoint(_HITS) else None,
        "ttft_p50": quantile(0.5, ttft),
        "ttft_p95": quantile(0.95, ttft),
        "num_looks": found.counts[Metric.SCRAPES],
        "is_observed": found.counts[Metric.SCRAPES] > 0,
    }


def _read(period: Period, engine: str | None, model_name: str | None) -> _Sums:
    metrics = (*_COUNTS, Metric.SCRAPES, Metric.HIT_TOKENS, Metric.TTFT)
    series = counters_of(metrics, engine=engine, model_name=model_name)
    names = names_of(series, "metric", "cache_tier", "detail")
    found = _Sums(told={metric for metric, *_ in names.values()})
    found.hits = {tier: 0 for metric, tier, _ in names.values() if metric == Metric.HIT_TOKENS}
    for series_id, total in span_sums(names, period, series.model).items():
        _sort_out(found, *names[series_id], total=total)
    return found


def _sort_out(found: _Sums, metric: str, tier: str, detail: str, *, total: int) -> None:
    if metric == Metric.HIT_TOKENS:
        found.hits[tier] += total
    elif metric == Metric.TTFT:
        found.ttft[float(detail)] += total
    else:
        found.counts[metric] += total
    if metric == Metric.REQUESTS:
        found.reasons[detail] = found.reasons.get(detail, 0) + total
