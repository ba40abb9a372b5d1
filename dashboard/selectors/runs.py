"""The one way stored amounts are read: chunks and what is still in the head, in one statement. Knows no metric.

One statement sees both as they are at one moment, so that nothing is missed or doubled while amounts move. Very many
series take several: amounts never move from one series to another.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import add

from django.db import connection

from dashboard.batches import MANY, batched
from dashboard.chunks import NUM_BUCKETS, Buckets, ChunkError, span_seconds, unpack
from dashboard.models import Series, TotalSeries

Counted = type[Series] | type[TotalSeries]
Column = Sequence[int]

# SQLite and PostgreSQL both speak this. Ids are written out: the ORM looks at each of some hundred several times.
_SQL = """
SELECT series_id, start_at, packed, 0, 0 FROM {chunks}
WHERE series_id IN ({ids}) AND resolution = %s AND start_at > %s AND start_at < %s
UNION ALL
SELECT series_id, start_at - start_at %% %s, NULL, SUM(value), SUM(num_samples) FROM {head}
WHERE series_id IN ({ids}) AND start_at >= %s AND start_at < %s GROUP BY 1, 2
"""
_PACKED = "SELECT resolution, start_at, packed FROM {chunks} WHERE series_id = %s"
_FOREVER = 2**40


@dataclass(frozen=True, slots=True)
class Run:
    """Buckets of one series that follow each other, the first at `start_at`; those with no readings are not there.

    Several runs may speak of one bucket: it holds their sum.
    """

    series_id: int
    start_at: int
    values: Column
    num_samples: Column


def chunks_of(counted: Counted) -> str:
    return "dashboard_chunk" if counted is Series else "dashboard_totalchunk"


def head_of(counted: Counted) -> str:
    return "dashboard_head" if counted is Series else "dashboard_totalhead"


def runs(
    series_ids: Collection[int], resolution: int, of: Counted = Series, *, start: int = 0, end: int = _FOREVER
) -> Iterator[Run]:
    """All that is stored of these series, or totals, at a resolution within [start, end), both multiples of it."""
    for together in batched(list(series_ids), MANY):
        yield from _runs(together, resolution, of, start, end)


def _runs(series_ids: Collection[int], resolution: int, of: Counted, start: int, end: int) -> Iterator[Run]:
    ids = ", ".join(str(int(series_id)) for series_id in series_ids)
    sql = _SQL.format(ids=ids, chunks=chunks_of(of), head=head_of(of))
    span = span_seconds(resolution)
    with connection.cursor() as cursor:
        cursor.execute(sql, [resolution, start - span, end, resolution, start, end])
        rows = cursor.fetchall()
    for series_id, start_at, packed, value, num_samples in rows:
        if packed is None:
            yield Run(series_id, start_at, (int(value),), (int(num_samples),))
        else:
            chunk = opened(of, series_id, resolution, start_at, packed)
            yield _cut(series_id, start_at, chunk, resolution, start, end)


def packed_of(series_id: int, of: Counted = Series) -> Iterator[tuple[int, int, Buckets]]:
    """Resolution, start and buckets of every chunk of one series, or total."""
    with connection.cursor() as cursor:
        cursor.execute(_PACKED.format(chunks=chunks_of(of)), [series_id])
        rows = cursor.fetchall()
    for resolution, start_at, packed in rows:
        yield resolution, start_at, opened(of, series_id, resolution, start_at, packed)


def opened(of: Counted, series_id: int, resolution: int, start_at: int, packed: bytes) -> Buckets:
    """A stored chunk's buckets. Raises ChunkError, which says where it lies."""
    try:
        return unpack(packed)
    except ChunkError as error:
        raise unreadable(of, series_id, resolution, start_at, error) from None


def unreadable(of: Counted, series_id: int, resolution: int, start_at: int, error: ChunkError) -> ChunkError:
    """The error that says where it lies."""
    place = f"series_id = {series_id} AND resolution = {resolution} AND start_at = {start_at}"
    return ChunkError(f"A row of {chunks_of(of)} cannot be read ({error}): {place}.")


def _cut(series_id: int, chunk_start: int, chunk: Buckets, resolution: int, start: int, end: int) -> Run:
    first = max(0, (start - chunk_start) // resolution)
    last = min(NUM_BUCKETS, (end - chunk_start) // resolution)
    if first == 0 and last == NUM_BUCKETS:
        return Run(series_id, chunk_start, chunk.values, chunk.num_samples)
    start_at = chunk_start + first * resolution
    return Run(series_id, start_at, chunk.values[first:last], chunk.num_samples[first:last])


def newest(series_ids: Collection[int], resolution: int, *, start: int = 0, end: int = _FOREVER) -> dict[int, float]:
    """The mean of each series' newest bucket within [start, end) that has readings; series without any are left out."""
    found: dict[int, tuple[int, int, int]] = {}
    for run in runs(series_ids, resolution, start=start, end=end):
        index = next((place for place in reversed(range(len(run.values))) if run.num_samples[place]), None)
        if index is None:
            continue
        at, value, num_samples = run.start_at + index * resolution, run.values[index], run.num_samples[index]
        known_at, more, more_samples = found.get(run.series_id, (at, 0, 0))
        if at == known_at:
            value, num_samples = value + more, num_samples + more_samples
        if at >= known_at:
            found[run.series_id] = at, value, num_samples
    return {series_id: value / num_samples for series_id, (_, value, num_samples) in found.items()}


class Line:
    """Adds up runs over [start, start + num_buckets × resolution): `values` and `num_samples` of every bucket."""

    def __init__(self, resolution: int, start: int, num_buckets: int) -> None:
        self._resolution, self._start = resolution, start
        self.values = [0] * num_buckets
        self.num_samples = [0] * num_buckets

    def add(self, run: Run) -> None:
        place = (run.start_at - self._start) // self._resolution
        if len(run.values) == 1:
            self.values[place] += run.values[0]
            self.num_samples[place] += run.num_samples[0]
            return
        end = place + len(run.values)
        if not any(self.num_samples[place:end]):  # most often: the chunks of one series follow each other
            self.values[place:end], self.num_samples[place:end] = run.values, run.num_samples
            return
        self.values[place:end] = map(add, self.values[place:end], run.values)
        self.num_samples[place:end] = map(add, self.num_samples[place:end], run.num_samples)
