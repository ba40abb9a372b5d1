"""Verifies the store: every resolution says the same about every stretch of time that it keeps whole, totals say what
the engines' series come to, no bucket is of a series that is gone, and every chunk can be read.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import pairwise

from dashboard.chunks import ChunkError
from dashboard.gauge_steps import RESOLUTION_OF, everything
from dashboard.models import Chunk, Head, Resolution, Series, TotalChunk, TotalHead, TotalSeries
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.runs import Counted, packed_of, runs
from dashboard.services.chunks import all_of

_SHOWN = 5
_DAY = 86_400
ByStart = dict[int, tuple[int, int]]  # start → Σ value, Σ num_samples


def check(*, now: datetime) -> None:
    """Raises AssertionError with a sentence."""
    try:
        _check(oldest_starts(retention(), now.timestamp()))
    except ChunkError as error:
        raise AssertionError(str(error)) from None


def _check(oldest: Mapping[int, int]) -> None:
    wrong: list[tuple[int, int]] = []
    wrong_totals: list[tuple[int, int, int]] = []
    gauges = set(TotalSeries.objects.filter(metric__in=Series.GAUGES).values_list("pk", flat=True))
    of_total: dict[int | None, list[int]] = defaultdict(list)
    for pk, total_id in Series.objects.values_list("pk", "total"):
        of_total[total_id].append(pk)
    for total in of_total.keys() | _all(TotalSeries):  # one by one: memory holds one sum, and every series is read once
        together: dict[int, ByStart] = {resolution: {} for resolution in Resolution.values}
        for pk in of_total[total]:
            buckets = buckets_of([pk])
            wrong += _differences(buckets, oldest)
            _add(together, buckets)
        if total is not None:
            wrong_totals += (
                _wrong_of_gauges(total, of_total[total], oldest)
                if total in gauges
                else _wrong_of_total(total, together, oldest)
            )
    assert not wrong, f"{len(wrong)} buckets differ from the finer ones that make them up: {wrong[:_SHOWN]}"
    assert not wrong_totals, f"Totals are not what engines' buckets come to: {sorted(wrong_totals)[:_SHOWN]}"
    orphans = {pk for rows in (Head, Chunk) for pk in _series_of(rows)} - _all(Series)
    orphans |= {pk for rows in (TotalHead, TotalChunk) for pk in _series_of(rows)} - _all(TotalSeries)
    assert not orphans, f"Series that are gone have buckets: {sorted(orphans)[:_SHOWN]}"


def buckets_of(series_ids: Collection[int], of: Counted = Series) -> dict[int, ByStart]:
    """By resolution: what these series come to."""
    found: dict[int, ByStart] = {}
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


def _differences(buckets: dict[int, ByStart], oldest: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """(resolution, start_at) of coarse buckets that are not their finer buckets' sum.

    Expiry cuts at whole days, and somebody may have it keep more than it kept before.
    """
    for fine, coarse in pairwise(sorted(buckets)):
        if not buckets[fine]:
            continue
        first = max(oldest[fine], min(buckets[fine]) // _DAY * _DAY)
        sums: ByStart = {}
        for at, (value, num_samples) in buckets[fine].items():
            before = sums.get(at - at % coarse, (0, 0))
            sums[at - at % coarse] = (before[0] + value, before[1] + num_samples)
        for at in sums.keys() | buckets[coarse].keys():
            if at >= first and sums.get(at) != buckets[coarse].get(at):
                yield coarse, at


def _add(sums: dict[int, ByStart], buckets: dict[int, ByStart]) -> None:
    for resolution, of_resolution in buckets.items():
        together = sums[resolution]
        for at, (value, num_samples) in of_resolution.items():
            before = together.get(at, (0, 0))
            together[at] = (before[0] + value, before[1] + num_samples)


def _wrong_of_total(
    total_id: int, engines: dict[int, ByStart], oldest: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    for resolution, total in buckets_of([total_id], TotalSeries).items():
        for at in total.keys() | engines[resolution].keys():
            if at >= oldest[resolution] and total.get(at) != engines[resolution].get(at):
                yield total_id, resolution, at


def _wrong_of_gauges(
    total_id: int, series_ids: Collection[int], oldest: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    """What is packed of them, in steps: the head is added by who reads (selectors/gauges.py)."""
    told = all_of(dict.fromkeys(series_ids, total_id), is_gone=False)
    engines = {
        (step, start_at + index * step): (value, num)
        for (_, step, start_at), of_chunk in told.items()
        for index, value, num in of_chunk
    }
    total = {
        (step, start_at + index * step): (chunk.values[index], chunk.num_samples[index])
        for step, start_at, chunk in packed_of(total_id, TotalSeries)
        for index in everything(chunk)
    }
    for step, at in total.keys() | engines.keys():
        if at >= oldest[RESOLUTION_OF[step]] and total.get((step, at)) != engines.get((step, at)):
            yield total_id, step, at


def _all(of: Counted) -> set[int]:
    return set(of._default_manager.values_list("pk", flat=True))


def _series_of(rows: type[Head] | type[Chunk] | type[TotalHead] | type[TotalChunk]) -> set[int]:
    return set(rows._default_manager.order_by().values_list("series_id", flat=True).distinct())
