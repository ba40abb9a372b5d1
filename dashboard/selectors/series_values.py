"""One metric step by step, as exact integers, summed over whatever is not asked apart. Reads only; knows no chart."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dashboard.models import TotalSeries
from dashboard.selectors.gauges import gauges_of, means
from dashboard.selectors.metric_facts import METRIC_FACTS
from dashboard.selectors.period import Period
from dashboard.selectors.store import Counters, Metric, Names, Sums, counters_of, names_of, series_of, sums

COLUMNS = ("engine", "model_name", "cache_tier", "detail")
_OBSERVED_BY = ("engine", "model_name")
MAX_VALUES = 200_000  # 1.5 MB of JSON
MAX_READ = 1_000_000  # of single engines, where their means have to be known to add them up: 200 MB

Slots = Mapping[int, int]


class TooMuchError(ValueError):
    """More values than one answer holds; the message is one sentence for a person."""


@dataclass(frozen=True)
class Wanted:
    """None means every engine, model, tier or detail. `by`: columns that are told apart, in the order of COLUMNS."""

    metric: str
    by: tuple[str, ...]
    engine: str | None = None
    model_name: str | None = None
    tier: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Values:
    """`names` by column; of each step None where nobody looked."""

    names: Mapping[str, str]
    values: list[int | None]


def series_values(wanted: Wanted, period: Period) -> list[Values]:
    """Sorted by names. Raises TooMuchError."""
    series = _series(wanted, period)
    names = names_of(series, *wanted.by)
    keys = sorted(set(names.values()))
    num_steps = (period.end - period.start) // period.step_seconds
    if len(keys) * num_steps > MAX_VALUES:
        raise TooMuchError(
            f"{len(keys):,} series of {num_steps:,} steps are more than {MAX_VALUES:,} values, the most of one answer; "
            "ask for a longer step, a shorter period, one engine, or less apart in “by”."
        )
    if METRIC_FACTS[wanted.metric].is_gauge:
        if series.model is not TotalSeries and len(names) * num_steps > MAX_READ:
            raise TooMuchError(
                f"A mean is of each engine first: {len(names):,} gauges of {num_steps:,} steps are more than "
                f"{MAX_READ:,}, the most that is read; ask for a longer step, a shorter period or one engine."
            )
        found = means(series, period, *wanted.by)
        return [_filled(wanted, key, found[key], found[key], num_steps) for key in keys]
    found, seen = sums(series, period, *wanted.by), _observed(wanted, period)
    return [_filled(wanted, key, found[key], seen[_seen_by(wanted, key)], num_steps) for key in keys]


def _series(wanted: Wanted, period: Period) -> Counters:
    series = _told(wanted, wanted.metric, period)
    if wanted.tier is not None:
        series = series.filter(cache_tier=wanted.tier)
    if wanted.detail is not None:
        series = series.filter(detail=wanted.detail)
    return series


def _told(wanted: Wanted, metric: str, period: Period) -> Counters:
    """Where engines are not told apart, their totals."""
    asked = {"engine": wanted.engine, "model_name": wanted.model_name}
    if "engine" in wanted.by:
        return series_of((metric,), **asked)
    return gauges_of((metric,), period, **asked) if METRIC_FACTS[metric].is_gauge else counters_of((metric,), **asked)


def _filled(wanted: Wanted, key: Names, found: Slots, seen: Collection[int], num_steps: int) -> Values:
    values = [found.get(slot, 0) if slot in seen else None for slot in range(num_steps)]
    return Values(dict(zip(wanted.by, key, strict=True)), values)


def _observed(wanted: Wanted, period: Period) -> Sums:
    """The steps in which any of the engines that are summed was looked at."""
    by = (column for column in wanted.by if column in _OBSERVED_BY)
    return sums(_told(wanted, Metric.SCRAPES, period), period, *by)


def _seen_by(wanted: Wanted, key: Names) -> Names:
    return tuple(name for column, name in zip(wanted.by, key, strict=True) if column in _OBSERVED_BY)
