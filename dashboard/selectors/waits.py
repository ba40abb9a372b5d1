"""How long an engine's blocks wait for their next use, as far as it tells. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, series_of, totals_of

# Fewer tell what chance did.
MIN_GAPS, MIN_EVICTED = 200, 100
_GPU = "gpu"


@dataclass(frozen=True)
class BlockWaits:
    """Of one cache: uses of a block by the seconds since its last one (upper bound → uses above the bound before), the
    mean time that evicted blocks had not been used, its size and its hits in tokens.
    """

    gaps: Mapping[float, int]
    idle_seconds: float
    capacity: int
    prompt_tokens: int
    hit_tokens: int


def waits_of(period: Period, *, engine: str, model_name: str | None, capacity_tokens: int) -> BlockWaits | None:
    """Of the gpu tier, with its size; None where too little is told."""
    wanted = (Metric.REUSE_GAPS, Metric.IDLE_BLOCKS, Metric.IDLE_MICROSECONDS, Metric.PROMPT_TOKENS, Metric.HIT_TOKENS)
    series = series_of(wanted, engine=engine, model_name=model_name)
    told = totals_of(series, period, "metric", "cache_tier", "detail")
    gaps = {float(bound): count for (metric, _, bound), count in told.items() if metric == Metric.REUSE_GAPS}
    num_evicted = told.get((Metric.IDLE_BLOCKS, _GPU, ""), 0)
    if num_evicted < MIN_EVICTED or sum(gaps.values()) < MIN_GAPS or capacity_tokens <= 0:
        return None
    return BlockWaits(
        # A bucket that counted nothing is not stored, but where the next one begins is needed.
        gaps=dict.fromkeys(_known_bounds(engine), 0) | gaps,
        idle_seconds=told.get((Metric.IDLE_MICROSECONDS, _GPU, ""), 0) / 1_000_000 / num_evicted,
        capacity=capacity_tokens,
        prompt_tokens=told.get((Metric.PROMPT_TOKENS, "", ""), 0),
        hit_tokens=told.get((Metric.HIT_TOKENS, _GPU, ""), 0),
    )


def _known_bounds(engine: str) -> list[float]:
    details = series_of((Metric.REUSE_GAPS,), engine=engine, model_name=None).values_list("detail", flat=True)
    return [float(detail) for detail in details.distinct()]
