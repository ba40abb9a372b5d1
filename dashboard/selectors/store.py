"""Series as charts want them: filtered by engine and model, added up by name, in a period's steps. Knows no chart."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from django.db.models import QuerySet

from dashboard.models import CacheTier, Series, Source, TotalSeries
from dashboard.selectors.period import Period
from dashboard.selectors.runs import Counted, Line, runs
from dashboard.selectors.spans import span_sums

Metric = Series.Metric
TIER_ORDER = tuple(CacheTier.values)
Counters = QuerySet[Series] | QuerySet[TotalSeries]
Names = tuple[str, ...]
Sums = dict[Names, dict[int, int]]  # names → step's index in the period → Σ value


def series_of(metrics: Collection[str], *, engine: str | None, model_name: str | None) -> QuerySet[Series]:
    """Of all engines but replays, whose traffic is not of this time; of one where it is chosen."""
    series = Series.objects.filter(metric__in=metrics)
    series = series.filter(engine=engine) if engine else series.exclude(source__kind=Source.Kind.REPLAY)
    return series.filter(model_name=model_name) if model_name else series


def counters_of(metrics: Collection[str], *, engine: str | None, model_name: str | None) -> Counters:
    """As `series_of`, of counters that are not told apart by engine: where none is chosen their totals, one a model."""
    if engine:
        return series_of(metrics, engine=engine, model_name=model_name)
    totals = TotalSeries.objects.filter(metric__in=metrics)
    return totals.filter(model_name=model_name) if model_name else totals


def sums(series: Counters, period: Period, *by: str) -> Sums:
    """Σ value of these series in each step, by these columns of theirs."""
    names = names_of(series, *by)
    numbers = {key: number for number, key in enumerate(sorted(set(names.values())))}
    keys = list(numbers)
    found: Sums = defaultdict(dict)
    for slot, part, value, _ in grouped({pk: numbers[key] for pk, key in names.items()}, period, series.model):
        found[keys[part]][slot] = value
    return found


def totals_of(series: Counters, period: Period, *by: str) -> dict[Names, int]:
    """Σ value of these series over the whole period."""
    names = names_of(series, *by)
    found: dict[Names, int] = defaultdict(int)
    for series_id, value in span_sums(names, period, series.model).items():
        found[names[series_id]] += value
    return found


def names_of(series: Counters, *by: str) -> dict[int, Names]:
    return {pk: tuple(columns) for pk, *columns in series.values_list("pk", *by)}


def grouped(parts: Mapping[int, int], period: Period, of: Counted = Series) -> Iterator[tuple[int, int, int, int]]:
    """(slot, part, Σ value, Σ num_samples) of the period's steps that have any.

    `parts`: id of a series, or of a total where `of` says so → part, a set of series that add up.
    """
    num_together = period.step_seconds // period.resolution
    for part, line in lines(parts, period, of):
        for slot, (value, num_samples) in enumerate(steps(line, num_together)):
            if num_samples:
                yield slot, part, value, num_samples


def lines(parts: Mapping[int, int], period: Period, of: Counted) -> list[tuple[int, Line]]:
    """Of each part that has any, the stored buckets of the period."""
    resolution = period.resolution
    num_buckets = (period.end - period.start) // resolution
    found: dict[int, Line] = {}
    for run in runs(parts, resolution, of, start=period.start, end=period.end):
        part = parts[run.series_id]
        if (line := found.get(part)) is None:
            line = found[part] = Line(resolution, period.start, num_buckets)
        line.add(run)
    return sorted(found.items())


def steps(line: Line, num_together: int) -> Iterator[tuple[int, int]]:
    """Σ value and Σ num_samples of each so many buckets."""
    return zip(_sums(line.values, num_together), _sums(line.num_samples, num_together), strict=True)


def _sums(column: list[int], num_together: int) -> list[int]:
    if num_together == 1:
        return column
    return [sum(column[start : start + num_together]) for start in range(0, len(column), num_together)]


def in_tier_order(tiers: Collection[str]) -> list[str]:
    return [tier for tier in TIER_ORDER if tier in tiers]
