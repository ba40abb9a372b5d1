"""Prompt tokens of a period by the capacity that would have served them: the curve of every cache size. Reads only."""

from dataclasses import dataclass

from django.db.models import QuerySet

from dashboard.models import Series
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, counters_of, grouped, series_of, totals_of
from dashboard.tenants import COMMON, OTHER

NEVER = "+Inf"
_FIRST_OCTAVE = 1_024  # of a tenant's curve, which has a bound at each (tiers/whatif/shards_buckets.py)
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
    series = counters_of((Metric.REUSE_TOKENS,), engine=engine, model_name=model_name)
    found = {detail: tokens for (detail,), tokens in totals_of(series, period, "detail").items()}
    bounds = known_bounds() if found else ()
    return ReuseCurve(
        bounds=bounds,
        tokens=tuple(found.get(str(bound), 0) for bound in bounds),
        never_tokens=found.get(NEVER, 0),
        total_tokens=sum(found.values()),
        sample_rate=_sample_rate(period, engine, model_name),
    )


def tenant_curve(period: Period, tenant: str, *, engine: str, model_name: str | None = None) -> ReuseCurve:
    """Of one tenant's prompts in the cache that all share, at fewer bounds."""
    series = series_of((Metric.TENANT_REUSE_TOKENS,), engine=engine, model_name=model_name)
    alike = series.filter(detail__endswith=f" {tenant}")  # SQLite knows no case here, and a name may have blanks
    told = {detail.partition(" "): tokens for (detail,), tokens in totals_of(alike, period, "detail").items()}
    found = {bound: tokens for (bound, _, whose), tokens in told.items() if whose == tenant}
    # A replay has no series for what counted nothing, but where the next bound begins is needed.
    bounds = sorted({*map(int, found.keys() - {NEVER}), *filter(_is_octave, known_bounds() if found else ())})
    return ReuseCurve(
        bounds=tuple(bounds),
        tokens=tuple(found.get(str(bound), 0) for bound in bounds),
        never_tokens=found.get(NEVER, 0),
        total_tokens=sum(found.values()),
        sample_rate=None,
    )


def tenants_with_curves(*, engine: str, model_name: str | None = None) -> list[str]:
    """Sorted, after the common pool; those that are not counted by name come last. Empty where nobody has a name."""
    details = _details(series_of((Metric.TENANT_REUSE_TOKENS,), engine=engine, model_name=model_name))
    names = {detail.split(" ", 1)[-1] for detail in details if detail.startswith(NEVER)}
    return sorted(names, key=lambda name: (name == OTHER, name != COMMON, name)) if names - {COMMON, OTHER} else []


def _is_octave(bound: int) -> bool:
    return bound >= _FIRST_OCTAVE and not bound & (bound - 1)


def known_bounds() -> tuple[int, ...]:
    """Every bound that any engine tells: they are the same ones, and one that counted nothing begins the next."""
    details = _details(Series.objects.filter(metric=Metric.REUSE_TOKENS))
    return tuple(sorted(int(detail) for detail in details if detail != NEVER))


def _details(series: QuerySet[Series]) -> set[str]:
    return set(series.values_list("detail", flat=True))


def _sample_rate(period: Period, engine: str | None, model_name: str | None) -> float | None:
    """The mean of all readings."""
    series = series_of((Metric.REUSE_SAMPLE_PPM,), engine=engine, model_name=model_name)
    parts = dict.fromkeys(series.values_list("pk", flat=True), 0)
    readings = [(value, num_samples) for _, _, value, num_samples in grouped(parts, period)]
    num_readings = sum(num_samples for _, num_samples in readings)
    return sum(value for value, _ in readings) / num_readings / _PPM if num_readings else None
