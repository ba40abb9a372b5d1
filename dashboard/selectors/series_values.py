"""One metric step by step, as exact integers, summed over whatever is not asked apart. Reads only; knows no chart."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dashboard.selectors.metric_facts import METRIC_FACTS
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, Names, grouped, names_of, series_of

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
    names = _names(wanted)
    keys = sorted(set(names.values()))
    num_steps = (period.end - period.start) // period.step_seconds
    if len(keys) * num_steps > MAX_VALUES:
        raise TooMuchError(
            f"{len(keys):,} series of {num_steps:,} steps are more than {MAX_VALUES:,} values, the most of one answer; "
            "ask for a longer step, a shorter period, one engine, or less apart in “by”."
        )
    if METRIC_FACTS[wanted.metric].is_gauge:
        if len(names) * num_steps > MAX_READ:
            raise TooMuchError(
                f"A mean is of each engine first: {len(names):,} gauges of {num_steps:,} steps are more than "
                f"{MAX_READ:,}, the most that is read; ask for a longer step, a shorter period or one engine."
            )
        found = _means(names, period)
        return [_filled(wanted, key, found[key], found[key], num_steps) for key in keys]
    found, seen = _sums(names, period), _observed(wanted, period)
    return [_filled(wanted, key, found[key], seen[_seen_by(wanted, key)], num_steps) for key in keys]


def _names(wanted: Wanted) -> dict[int, Names]:
    series = series_of((wanted.metric,), engine=wanted.engine, model_name=wanted.model_name)
    if wanted.tier is not None:
        series = series.filter(cache_tier=wanted.tier)
    if wanted.detail is not None:
        series = series.filter(detail=wanted.detail)
    return names_of(series, *wanted.by)


def _filled(wanted: Wanted, key: Names, found: Slots, seen: Collection[int], num_steps: int) -> Values:
    values = [found.get(slot, 0) if slot in seen else None for slot in range(num_steps)]
    return Values(dict(zip(wanted.by, key, strict=True)), values)


def _sums(names: Mapping[int, Names], period: Period) -> dict[Names, Slots]:
    """Σ value by names and step, added up in the database."""
    numbers = {key: number for number, key in enumerate(sorted(set(names.values())))}
    keys = list(numbers)
    found: dict[Names, dict[int, int]] = defaultdict(dict)
    for slot, part, value, _ in grouped({pk: numbers[key] for pk, key in names.items()}, period):
        found[keys[part]][slot] = value
    return defaultdict(dict, found)


def _means(names: Mapping[int, Names], period: Period) -> dict[Names, Slots]:
    """Engines add up: each one's mean over the step, to the whole, then their sum (as selectors/residency.py)."""
    found: dict[Names, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for slot, pk, value, num_samples in grouped({pk: pk for pk in names}, period):
        found[names[pk]][slot] += round(value / num_samples)
    return defaultdict(dict, found)


def _observed(wanted: Wanted, period: Period) -> dict[Names, Slots]:
    """The steps in which any of the engines that are summed was looked at."""
    scrapes = series_of((Metric.SCRAPES,), engine=wanted.engine, model_name=wanted.model_name)
    return _sums(names_of(scrapes, *(column for column in wanted.by if column in _OBSERVED_BY)), period)


def _seen_by(wanted: Wanted, key: Names) -> Names:
    return tuple(name for column, name in zip(wanted.by, key, strict=True) if column in _OBSERVED_BY)
