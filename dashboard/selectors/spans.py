"""Sums of series over a period from few chunks: where there are many, whole days from days, edges from finer ones.

Every resolution holds the same sums, so the pieces add up to what the period's own resolution says (a test compares).
Four days in minutes are 5 chunks of a series, not 16; an hour in ten seconds is 2, and would be 6. Knows no metric.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dashboard.chunks import span_seconds
from dashboard.models import Resolution, Series
from dashboard.selectors.period import Period
from dashboard.selectors.runs import Counted, runs

_FEW_CHUNKS = 4


@dataclass(frozen=True)
class Piece:
    """A stretch, in Unix seconds, that buckets of one resolution hold exactly."""

    resolution: int
    start: int
    end: int


def pieces(period: Period) -> list[Piece]:
    """The period cut up; none finer than its own resolution, which is the finest that is still kept for it."""
    if period.end - period.start <= _FEW_CHUNKS * span_seconds(period.resolution):
        return [Piece(period.resolution, period.start, period.end)]
    resolutions = sorted((each for each in Resolution.values if each >= period.resolution), reverse=True)
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


def span_sums(series_ids: Collection[int], period: Period, of: Counted = Series) -> dict[int, int]:
    """Series id, or that of a total → Σ value over the period; series that did not move are left out."""
    found: dict[int, int] = defaultdict(int)
    for piece in pieces(period):
        for run in runs(series_ids, piece.resolution, of, start=piece.start, end=piece.end):
            found[run.series_id] += sum(run.values)
    return {series_id: value for series_id, value in found.items() if value}
