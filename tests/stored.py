"""Every bucket of a store, whether it lies in the head or in a chunk: read by itself, not through the selectors."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dashboard.chunks import unpack
from dashboard.models import Resolution

Execute = Callable[[str], Iterable[tuple[Any, ...]]]


class Row(NamedTuple):
    source_id: int
    engine: str
    model_name: str
    metric: str
    cache_tier: str
    detail: str
    resolution: int
    start_at: int
    value: int
    num_samples: int


def rows_of(execute: Execute, **told: Any) -> list[Row]:
    """In order of their starts; `told`: what the columns have to be."""
    names = {pk: columns for pk, *columns in execute(_SERIES)}
    found = _sums(execute, "dashboard_chunk", "dashboard_head")
    rows = [Row._make((*names[place[0]], *place[1:], *sums)) for place, sums in found.items() if sums[1]]
    wanted = [row for row in rows if all(getattr(row, name) == value for name, value in told.items())]
    return sorted(wanted, key=lambda row: (row.start_at, row))


def rows(**told: Any) -> list[Row]:
    """Of Django's connection."""
    return rows_of(_execute, **told)


def total_rows(**told: Any) -> list[Row]:
    """Of all engines together: `source_id` is 0, `engine` empty."""
    names = {pk: columns for pk, *columns in _execute(_TOTALS)}
    found = _sums(_execute, "dashboard_totalchunk", "dashboard_totalhead")
    rows = [Row._make((0, "", *names[place[0]], *place[1:], *sums)) for place, sums in found.items() if sums[1]]
    return sorted(row for row in rows if all(getattr(row, name) == value for name, value in told.items()))


def _execute(sql: str) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        told: list[tuple[Any, ...]] = cursor.fetchall()
    return told


def _sums(execute: Execute, chunks: str, head: str) -> dict[tuple[int, int, int], list[int]]:
    found: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for series_id, resolution, start_at, value, num_samples in _buckets(execute, chunks, head):
        sums = found[series_id, resolution, start_at]
        sums[0] += value
        sums[1] += num_samples
    return found


def _buckets(execute: Execute, chunks: str, head: str) -> Iterator[tuple[int, ...]]:
    for series_id, resolution, start_at, packed in execute(
        f"SELECT series_id, resolution, start_at, packed FROM {chunks}"
    ):
        chunk = unpack(packed)
        for number, (value, num_samples) in enumerate(zip(chunk.values, chunk.num_samples, strict=True)):
            yield series_id, resolution, start_at + number * resolution, value, num_samples
    for series_id, start_at, value, num_samples in execute(
        f"SELECT series_id, start_at, value, num_samples FROM {head}"
    ):
        for resolution in Resolution.values:
            yield series_id, resolution, start_at - start_at % resolution, value, num_samples


_SERIES = "SELECT id, source_id, engine, model_name, metric, cache_tier, detail FROM dashboard_series"
_TOTALS = "SELECT id, model_name, metric, cache_tier, detail FROM dashboard_totalseries"
