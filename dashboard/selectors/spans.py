"""Sums of series over a whole period from as few buckets as hold it: whole days from days, the edges from finer ones.

Every resolution holds the same sums, so the pieces add up to what the period's own resolution says (a test compares).
Thirty days of one series are 53 buckets instead of 720. Knows no metric.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db import connection

from dashboard.models import Bucket, Series, TotalBucket, TotalSeries
from dashboard.selectors.period import Period

# Written out: of some hundred ids the ORM looks at each one again for each piece, a third of a page's time.
_SQL = """
SELECT series_id, SUM(value) FROM {table}
WHERE series_id IN ({ids}) AND resolution = %s AND start_at >= %s AND start_at < %s GROUP BY series_id
"""


@dataclass(frozen=True)
class Piece:
    """A stretch, in Unix seconds, that buckets of one resolution hold exactly."""

    resolution: int
    start: int
    end: int


def pieces(period: Period) -> list[Piece]:
    """The period cut up; none finer than its own resolution, which is the finest that is still kept for it."""
    resolutions = sorted((each for each in Bucket.Resolution.values if each >= period.resolution), reverse=True)
    return list(_cut(period.start, period.end, resolutions))


def _cut(start: int, end: int, resolutions: list[int]) -> Iterator[Piece]:
    if start >= end:
        return
    coarsest, *finer = resolutions
    inner_start, inner_end = -(-start // coarsest) * coarsest, end // coarsest * coarsest
    if inner_start < inner_end:
        yield from _cut(start, inner_start, finer)
        yield Piece(coarsest, inner_start, inner_end)
        yield from _cut(inner_end, end, finer)
    else:
        yield from _cut(start, end, finer)


Counted = type[Series] | type[TotalSeries]


def buckets_of(counted: Counted) -> type[Bucket] | type[TotalBucket]:
    return Bucket if counted is Series else TotalBucket


def span_sums(series_ids: Collection[int], period: Period, of: Counted = Series) -> dict[int, int]:
    """Series id, or that of a total → Σ value over the period; series that did not move are left out."""
    found: dict[int, int] = defaultdict(int)
    if not series_ids:
        return found
    query = _SQL.format(
        ids=", ".join(str(int(series_id)) for series_id in series_ids), table=buckets_of(of)._meta.db_table
    )
    with connection.cursor() as cursor:
        for piece in pieces(period):
            cursor.execute(query, [piece.resolution, piece.start, piece.end])
            for series_id, value in cursor.fetchall():
                found[series_id] += int(value)
    return {series_id: value for series_id, value in found.items() if value}
