"""Verifies the store: every resolution says the same about every stretch of time that it keeps whole, totals say what
the engines' series come to, no bucket is of a series that is gone, and every chunk can be read.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import pairwise

from dashboard.chunks import ChunkError
from dashboard.models import Chunk, Head, Resolution, Series, TotalChunk, TotalHead, TotalSeries
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.runs import Counted, runs

_SHOWN = 5
_DAY = 86_400
Buckets = dict[int, tuple[int, int]]  # start → Σ value, Σ num_samples


def check(*, now: datetime) -> None:
    """Raises AssertionError with a sentence."""
    try:
        _check(oldest_starts(retention(), now.timestamp()))
    except ChunkError as error:
        raise AssertionError(str(error)) from None


def _check(oldest: Mapping[int, int]) -> None:
    wrong = [place for pk in _all(Series) for place in _differences(buckets_of([pk]), oldest)]
    assert not wrong, f"{len(wrong)} buckets differ from the finer ones that make them up: {wrong[:_SHOWN]}"
    wrong_totals = [place for pk in _all(TotalSeries) for place in _wrong_of_total(pk, oldest)]
    assert not wrong_totals, f"Totals are not what engines' buckets come to: {sorted(wrong_totals)[:_SHOWN]}"
    orphans = {pk for rows in (Head, Chunk) for pk in _series_of(rows)} - _all(Series)
    orphans |= {pk for rows in (TotalHead, TotalChunk) for pk in _series_of(rows)} - _all(TotalSeries)
    assert not orphans, f"Series that are gone have buckets: {sorted(orphans)[:_SHOWN]}"


def buckets_of(series_ids: Collection[int], of: Counted = Series) -> dict[int, Buckets]:
    """By resolution: what these series come to."""
    found: dict[int, Buckets] = {}
    for resolution in Resolution.values:
        values: Counter[int] = Counter()
        counts: Counter[int] = Counter()
        for run in runs(series_ids, resolution, of):
            starts = range(run.start_at, run.start_at + len(run.values) * resolution, resolution)
            for at, value, num_samples in zip(starts, run.values, run.num_samples, strict=True):
                values[at] += value
                counts[at] += num_samples
        found[resolution] = {at: (values[at], counts[at]) for at in sorted(counts) if counts[at]}
    return found


def _differences(buckets: dict[int, Buckets], oldest: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """(resolution, start_at) of coarse buckets that are not their finer buckets' sum.

    Expiry cuts at whole days, and somebody may have it keep more than it kept before.
    """
    for fine, coarse in pairwise(sorted(buckets)):
        if not buckets[fine]:
            continue
        first = max(oldest[fine], min(buckets[fine]) // _DAY * _DAY)
        sums: Buckets = {}
        for at, (value, num_samples) in buckets[fine].items():
            before = sums.get(at - at % coarse, (0, 0))
            sums[at - at % coarse] = (before[0] + value, before[1] + num_samples)
        for at in sums.keys() | buckets[coarse].keys():
            if at >= first and sums.get(at) != buckets[coarse].get(at):
                yield coarse, at


def _wrong_of_total(total_id: int, oldest: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    engines = buckets_of(list(Series.objects.filter(total=total_id).values_list("pk", flat=True)))
    for resolution, total in buckets_of([total_id], TotalSeries).items():
        for at in total.keys() | engines[resolution].keys():
            if at >= oldest[resolution] and total.get(at) != engines[resolution].get(at):
                yield total_id, resolution, at


def _all(of: Counted) -> set[int]:
    return set(of._default_manager.values_list("pk", flat=True))


def _series_of(rows: type[Head] | type[Chunk] | type[TotalHead] | type[TotalChunk]) -> set[int]:
    return set(rows._default_manager.order_by().values_list("series_id", flat=True).distinct())
