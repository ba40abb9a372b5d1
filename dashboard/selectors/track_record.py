"""What was predicted for sizes that were then applied, beside what was measured over as long a period. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import Prediction, Resolution, TierChange
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.latency import mean_seconds
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, series_of, totals_of

MAX_ROWS = 10  # the newest
_STEPS = tuple(Resolution.values)
_METRICS = (Metric.PROMPT_TOKENS, Metric.HIT_TOKENS, Metric.TTFT, Metric.TTFT_MICROSECONDS)


@dataclass(frozen=True)
class Compared:
    """`seconds` after it was applied, of the `wanted_seconds` that it was made from; `hit` by tier, of prompt tokens.

    `is_cut` where the tiers were changed again before that. `hit` is None where nothing was asked since.
    """

    prediction: Prediction
    seconds: int
    wanted_seconds: int
    is_cut: bool
    hit: Mapping[str, float] | None
    ttft_seconds: float | None


def compared(now: float) -> list[Compared]:
    """Newest first."""
    kept = oldest_starts(retention(), now)
    rows = Prediction.objects.select_related("author").order_by("-at", "-pk")[:MAX_ROWS]
    return [_compare(row, kept, now) for row in rows]


def _compare(row: Prediction, kept: Mapping[int, int], now: float) -> Compared:
    wanted = row.period_end - row.period_start
    start, end = row.at.timestamp(), min(now, row.at.timestamp() + wanted)
    later = TierChange.objects.filter(engine=row.engine, at__gt=row.at).exclude(action="clear").order_by("at").first()
    is_cut = later is not None and later.at.timestamp() < end
    period = _whole_steps(start, later.at.timestamp() if later and is_cut else end, kept)
    if period is None:
        return Compared(row, 0, wanted, is_cut, None, None)
    hit, ttft = _measure(row, period)
    return Compared(row, period.end - period.start, wanted, is_cut, hit, ttft)


def _whole_steps(start: float, end: float, kept: Mapping[int, int]) -> Period | None:
    """The steps that lie wholly within, as fine as they are still kept; None where there is none."""
    step = next((step for step in _STEPS if start >= kept[step]), _STEPS[-1])
    first, last = -(-int(start + 1) // step) * step, int(end) // step * step
    return Period(first, last, step) if first < last else None


def _measure(row: Prediction, period: Period) -> tuple[Mapping[str, float] | None, float | None]:
    series = series_of(_METRICS, engine=row.engine, model_name=row.model_name or None)
    sums: dict[str, int] = dict.fromkeys(_METRICS, 0)
    hits: dict[str, int] = {}
    for (metric, tier), value in totals_of(series, period, "metric", "cache_tier").items():
        sums[metric] += value
        if metric == Metric.HIT_TOKENS:
            hits[tier] = value
    prompt = sums[Metric.PROMPT_TOKENS]
    shares = {tier: value / prompt for tier, value in hits.items()} if prompt else None
    return shares, mean_seconds(sums[Metric.TTFT_MICROSECONDS], sums[Metric.TTFT])
