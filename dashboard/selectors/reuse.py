"""Prompt tokens of a period by the capacity that would have served them: the curve of every cache size. Reads only."""

from dataclasses import dataclass

from dashboard.models import Series
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, grouped, series_of, totals_of

NEVER = "+Inf"
_PPM = 1_000_000


@dataclass(frozen=True)
class ReuseCurve:
    """`tokens[i]` would have been hits in an LRU stack of `bounds[i]` tokens and in none of `bounds[i - 1]`.

    `never_tokens` would have been hits in none; `total_tokens` is all of them. `sample_rate` is the share of the blocks
    that the engine looked at, 1.0 where it was all of them; None where it does not tell. A curve that was counted is
    known at all sizes (None); one that was estimated, up to `known_up_to` tokens, and below it tells about the least.
    """

    bounds: tuple[int, ...]
    tokens: tuple[int, ...]
    never_tokens: int
    total_tokens: int
    sample_rate: float | None
    known_up_to: int | None = None


def reuse_curve(period: Period, *, engine: str | None = None, model_name: str | None = None) -> ReuseCurve:
    """Engines add up as if each had a cache of the size that is asked for. Without any traffic all counts are 0."""
    series = series_of((Metric.REUSE_TOKENS,), engine=engine, model_name=model_name)
    found = {detail: tokens for (detail,), tokens in totals_of(series, period, "detail").items()}
    bounds = known_bounds() if found else ()
    return ReuseCurve(
        bounds=bounds,
        tokens=tuple(found.get(str(bound), 0) for bound in bounds),
        never_tokens=found.get(NEVER, 0),
        total_tokens=sum(found.values()),
        sample_rate=_sample_rate(period, engine, model_name),
    )


def known_bounds() -> tuple[int, ...]:
    """Every bound that any engine tells: they are the same ones, and one that counted nothing begins the next."""
    details = Series.objects.filter(metric=Metric.REUSE_TOKENS).values_list("detail", flat=True).distinct()
    return tuple(sorted(int(detail) for detail in details if detail != NEVER))


def _sample_rate(period: Period, engine: str | None, model_name: str | None) -> float | None:
    """The mean of all readings."""
    series = series_of((Metric.REUSE_SAMPLE_PPM,), engine=engine, model_name=model_name)
    parts = dict.fromkeys(series.values_list("pk", flat=True), 0)
    readings = [(value, num_samples) for _, _, value, num_samples in grouped(parts, period)]
    num_readings = sum(num_samples for _, num_samples in readings)
    return sum(value for value, _ in readings) / num_readings / _PPM if num_readings else None
