"""What gauges said on average, added up over engines. Knows no metric.

Each one's mean over each step, to the whole, then the sum of those that have a name together: what two engines hold is
together. Where no engine is chosen, totals tell what is packed; only the steps that the head reaches into, most often
the newest one, are read engine by engine: three thousand gauges of 500 engines take a tenth of reading all of them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import connection
from django.db.models import QuerySet

from dashboard.chunks import ChunkError, span_seconds, unpacked_sums
from dashboard.gauge_steps import RESOLUTION_OF, mean
from dashboard.models import Series, TotalSeries
from dashboard.selectors.period import Period
from dashboard.selectors.runs import opened, unreadable
from dashboard.selectors.store import Counters, Names, Sums, lines, names_of, series_of, steps

Gauges = Counters


def gauges_of(
    metrics: Collection[str], period: Period, *, engine: str | None, model_name: str | None
) -> QuerySet[Series] | QuerySet[TotalSeries]:
    """Of gauges not told apart by engine: totals, where no engine is chosen and they are kept in such steps."""
    if engine or period.step_seconds not in RESOLUTION_OF:
        return series_of(metrics, engine=engine, model_name=model_name)
    totals = TotalSeries.objects.filter(metric__in=metrics)
    return totals.filter(model_name=model_name) if model_name else totals


def means(gauges: Gauges, period: Period, *by: str) -> Sums:
    """Their sums in each step, by these columns of theirs."""
    names = names_of(gauges, *by)
    return _of_totals(names, period) if gauges.model is TotalSeries else _of_series(names, period)


def _of_series(names: Mapping[int, Names], period: Period) -> Sums:
    found: Sums = defaultdict(dict)
    num_together = period.step_seconds // period.resolution
    for series_id, line in lines({series_id: series_id for series_id in names}, period, Series):
        of_name = found[names[series_id]]
        for slot, (value, num_samples) in enumerate(steps(line, num_together)):
            if num_samples:
                of_name[slot] = of_name.get(slot, 0) + mean(value, num_samples)
    return found


def _of_totals(names: Mapping[int, Names], period: Period) -> Sums:
    found: Sums = defaultdict(dict)
    for total_id, series_id, start_at, packed, value, num_samples in _rows(names, period):
        of_name = found[names[total_id]]
        if series_id:
            sums = [(start_at, _more(series_id, start_at, period.step_seconds, packed, int(value), int(num_samples)))]
        else:
            sums = _packed(total_id, start_at, packed or b"", period)
        for at, more in sums:
            slot = (at - period.start) // period.step_seconds
            of_name[slot] = of_name.get(slot, 0) + more
    return found


def _packed(total_id: int, chunk_start: int, packed: bytes, period: Period) -> list[tuple[int, int]]:
    """A total's steps within the period that have readings: where each starts, and what it says."""
    step = period.step_seconds
    chunk = opened(TotalSeries, total_id, step, chunk_start, packed)
    end = min(period.end, chunk_start + span_seconds(RESOLUTION_OF[step]))
    steps = range(max(period.start, chunk_start), end, step)
    return [(at, chunk.values[slot]) for at in steps if chunk.num_samples[slot := (at - chunk_start) // step]]


def _more(series_id: int, at: int, step: int, packed: bytes | None, value: int, num_samples: int) -> int:
    """By how much a gauge's mean over a step is more with what the head has of it than without, which totals know."""
    resolution = RESOLUTION_OF[step]
    offset = at % span_seconds(resolution)
    settled = (0, 0)
    if packed is not None:
        first = offset // resolution
        try:
            settled = unpacked_sums(packed, first, first + step // resolution)
        except ChunkError as error:
            raise unreadable(Series, series_id, resolution, at - offset, error) from None
    return mean(settled[0] + value, settled[1] + num_samples) - mean(*settled)


def _rows(total_ids: Collection[int], period: Period) -> list[tuple[int, int, int, bytes | None, int, int]]:
    """Of totals their chunks (no series' id); of series what the head has in a step, with the chunk that has the rest.

    In one statement, that all is of one moment.
    """
    if not total_ids:
        return []
    ids = ", ".join(str(int(each)) for each in total_ids)
    step, resolution = period.step_seconds, RESOLUTION_OF[period.step_seconds]
    span = span_seconds(resolution)
    asked = {"ids": ids, "step": step, "resolution": resolution, "span": span, "start": period.start, "end": period.end}
    fresh = _FRESH["postgresql" if connection.vendor == "postgresql" else "sqlite"]
    with connection.cursor() as cursor:
        cursor.execute(_SQL.format(fresh=fresh.format(**asked), **asked))
        found: list[tuple[int, int, int, bytes | None, int, int]] = cursor.fetchall()
    return found


# PostgreSQL cannot know in how few steps the rows of the head lie; left to itself it reads all of the head, and all
# chunks of a resolution, to join them: so it is told to look into both series by series.
_SQL = """
SELECT series_id, 0, start_at, packed, 0, 0 FROM dashboard_totalchunk
WHERE series_id IN ({ids}) AND resolution = {step} AND start_at > {start} - {span} AND start_at < {end}
UNION ALL
SELECT total_id, series_id, at, (
    SELECT packed FROM dashboard_chunk AS chunk WHERE chunk.series_id = fresh.series_id
    AND chunk.resolution = {resolution} AND chunk.start_at = fresh.at - fresh.at % {span}
), value, num_samples
FROM ({fresh}) AS fresh
"""
_FRESH = {
    "postgresql": """
    SELECT series.total_id, series.id AS series_id, head.* FROM dashboard_series AS series CROSS JOIN LATERAL (
        SELECT start_at - start_at % {step} AS at, SUM(value) AS value, SUM(num_samples) AS num_samples
        FROM dashboard_head WHERE series_id = series.id AND start_at >= {start} AND start_at < {end} GROUP BY 1
    ) AS head WHERE series.total_id IN ({ids})
    """,
    "sqlite": """
    SELECT series.total_id, series.id AS series_id, start_at - start_at % {step} AS at,
        SUM(value) AS value, SUM(num_samples) AS num_samples
    FROM dashboard_series AS series JOIN dashboard_head AS head ON head.series_id = series.id
    WHERE series.total_id IN ({ids}) AND start_at >= {start} AND start_at < {end} GROUP BY 1, 2, 3
    """,
}
