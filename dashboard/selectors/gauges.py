"""What gauges said on average, added up over engines. Knows no metric.

Each one's mean over each step, to the whole, then the sum of those that have a name together: what two engines hold is
together. Where no engine is chosen, totals tell what is packed, and the database adds up the head. One by one are read
only steps that have both, of most gauges one, where the last packing ended: three thousand gauges of 500 engines take a
tenth of reading all of them. A gauge that has packed readings after that step, an import up to now, has all read.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import connection

from dashboard.chunks import ChunkError, span_seconds, unpacked_sums
from dashboard.gauge_steps import RESOLUTION_OF, mean
from dashboard.models import Series, TotalSeries
from dashboard.selectors.period import Period
from dashboard.selectors.runs import opened, unreadable
from dashboard.selectors.store import Counters, Names, Sums, counters_of, lines, names_of, series_of, steps


def gauges_of(metrics: Collection[str], period: Period, *, engine: str | None, model_name: str | None) -> Counters:
    """As `counters_of`, of gauges not told apart by engine; their totals are kept in some steps only."""
    choose = counters_of if period.step_seconds in RESOLUTION_OF else series_of
    return choose(metrics, engine=engine, model_name=model_name)


def means(gauges: Counters, period: Period, *by: str) -> Sums:
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
    for total_id, series_id, at, packed, value, num_samples, is_later_packed in _rows(names, period):
        if series_id:
            more, is_newest = _more(series_id, at, period.step_seconds, packed, int(value), int(num_samples))
            if is_later_packed or not is_newest:
                return _of_series(_names_of_series(names), period)
            sums = [(at, more)]
        else:
            sums = [(at, int(value))] if packed is None else _packed(total_id, at, packed, period)
        of_name = found[names[total_id]]
        for start_at, more in sums:
            slot = (start_at - period.start) // period.step_seconds
            of_name[slot] = of_name.get(slot, 0) + more
    return found


def _names_of_series(names: Mapping[int, Names]) -> dict[int, Names]:
    series = Series.objects.filter(total__in=list(names)).values_list("pk", "total")
    return {pk: names[total_id] for pk, total_id in series if total_id is not None}


def _packed(total_id: int, chunk_start: int, packed: bytes, period: Period) -> list[tuple[int, int]]:
    """A total's steps within the period that have readings: where each starts, and what it says."""
    step = period.step_seconds
    chunk = opened(TotalSeries, total_id, step, chunk_start, packed)
    end = min(period.end, chunk_start + span_seconds(RESOLUTION_OF[step]))
    steps = range(max(period.start, chunk_start), end, step)
    return [(at, chunk.values[slot]) for at in steps if chunk.num_samples[slot := (at - chunk_start) // step]]


def _more(series_id: int, at: int, step: int, packed: bytes | None, value: int, num_samples: int) -> tuple[int, bool]:
    """By how much a gauge's mean over a step is more with what the head has of it than without, which totals know; and
    whether no later step of its chunk has anything.
    """
    if packed is None:
        return mean(value, num_samples), True
    resolution = RESOLUTION_OF[step]
    offset = at % span_seconds(resolution)
    first, end = offset // resolution, (offset + step) // resolution
    try:
        settled, num_settled, newest = unpacked_sums(packed, first, end)
    except ChunkError as error:
        raise unreadable(Series, series_id, resolution, at - offset, error) from None
    return mean(settled + value, num_settled + num_samples) - mean(settled, num_settled), newest < end


Row = tuple[int, int, int, bytes | None, int, int, int]


def _rows(total_ids: Collection[int], period: Period) -> list[Row]:
    """Of totals their chunks, and what all engines' heads come to in each step but the first that each has any in.

    Of that one each series' sums, the chunk that has the rest, and whether there are later ones. In one statement, that
    all is of one moment.
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
        found: list[Row] = cursor.fetchall()
    return found


# PostgreSQL cannot know in how few steps the rows of the head lie; left to itself it reads all of the head, and all
# chunks of a resolution, to join them: so it is told to look into both series by series.
_SQL = """
WITH fresh AS MATERIALIZED ({fresh})
SELECT series_id, 0, start_at, packed, 0, 0, 0 FROM dashboard_totalchunk
WHERE series_id IN ({ids}) AND resolution = {step} AND start_at > {start} - {span} AND start_at < {end}
UNION ALL
SELECT total_id, 0, at, NULL, SUM(value / num_samples + CASE
    WHEN 2 * (value % num_samples) > num_samples THEN 1
    WHEN 2 * (value % num_samples) = num_samples AND value / num_samples % 2 = 1 THEN 1
    ELSE 0 END
), 0, 0
FROM fresh WHERE at > first GROUP BY 1, 3
UNION ALL
SELECT total_id, series_id, at, (
    SELECT packed FROM dashboard_chunk AS chunk WHERE chunk.series_id = fresh.series_id
    AND chunk.resolution = {resolution} AND chunk.start_at = fresh.at - fresh.at % {span}
), value, num_samples, CASE WHEN EXISTS (
    SELECT 1 FROM dashboard_chunk AS chunk WHERE chunk.series_id = fresh.series_id
    AND chunk.resolution = {resolution} AND chunk.start_at > fresh.at AND chunk.start_at < {end}
) THEN 1 ELSE 0 END
FROM fresh WHERE at = first
"""
_FRESH = {
    "postgresql": """
    SELECT series.total_id, series.id AS series_id, head.* FROM dashboard_series AS series CROSS JOIN LATERAL (
        SELECT start_at - start_at % {step} AS at, MIN(start_at - start_at % {step}) OVER () AS first,
            CAST(SUM(value) AS bigint) AS value, CAST(SUM(num_samples) AS bigint) AS num_samples
        FROM dashboard_head WHERE series_id = series.id AND start_at >= {start} AND start_at < {end} GROUP BY 1
    ) AS head WHERE series.total_id IN ({ids})
    """,
    "sqlite": """
    SELECT total_id, series_id, at, MIN(at) OVER (PARTITION BY series_id) AS first, value, num_samples FROM (
        SELECT series.total_id, series.id AS series_id, start_at - start_at % {step} AS at,
            SUM(value) AS value, SUM(num_samples) AS num_samples
        FROM dashboard_series AS series JOIN dashboard_head AS head ON head.series_id = series.id
        WHERE series.total_id IN ({ids}) AND start_at >= {start} AND start_at < {end} GROUP BY 1, 2, 3
    )
    """,
}
