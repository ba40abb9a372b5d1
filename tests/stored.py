"""Every bucket of a store, whether it lies in the head or in a chunk: read by itself, not through the selectors."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dashboard.chunks import unpack
from dashboard.models import Resolution

Execute = Callable[[str], Iterable[tuple[Any, ...]]]
Place = tuple[int, int, int]  # series, resolution, start


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
    names = {pk: tuple(columns) for pk, *columns in execute(_SERIES)}
    return _rows(execute, "dashboard_chunk", "dashboard_head", names, told)


def rows(**told: Any) -> list[Row]:
    """Of Django's connection."""
    return rows_of(_execute, **told)


def total_rows(**told: Any) -> list[Row]:
    """Of all engines together: `source_id` is 0, `engine` empty."""
    names = {pk: (0, "", *columns) for pk, *columns in _execute(_TOTALS)}
    return _rows(_execute, "dashboard_totalchunk", "dashboard_totalhead", names, told)


def _rows(
    execute: Execute, chunks: str, head: str, names: dict[int, tuple[Any, ...]], told: Mapping[str, Any]
) -> list[Row]:
    """Only what is asked for is unpacked: of all that a replay stores that would take seconds."""
    columns = {name: value for name, value in told.items() if name not in ("resolution", "start_at")}
    wanted = {pk: each for pk, each in names.items() if _has(Row._make((*each, 0, 0, 0, 0)), columns)}
    found: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
    for place, value, num_samples in _buckets(execute, chunks, head, wanted, told.get("resolution")):
        found[place][0] += value
        found[place][1] += num_samples
    rows = [Row._make((*wanted[place[0]], *place[1:], *sums)) for place, sums in found.items() if sums[1]]
    return sorted((row for row in rows if _has(row, told)), key=lambda row: (row.start_at, row))


def _has(row: Row, told: Mapping[str, Any]) -> bool:
    return all(getattr(row, name) == value for name, value in told.items())


def _execute(sql: str) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        told: list[tuple[Any, ...]] = cursor.fetchall()
    return told


def _buckets(
    execute: Execute, chunks: str, head: str, wanted: Container[int], asked: int | None
) -> Iterator[tuple[Place, int, int]]:
    """Those in which there is anything. Totals of gauges have chunks of other steps, too."""
    for series_id, resolution, start_at, packed in execute(
        f"SELECT series_id, resolution, start_at, packed FROM {chunks}"
    ):
        if series_id in wanted and asked in (None, resolution):
            chunk = unpack(packed)
            for number, (value, num_samples) in enumerate(zip(chunk.values, chunk.num_samples, strict=True)):
                if value or num_samples:
                    yield (series_id, resolution, start_at + number * resolution), value, num_samples
    for series_id, start_at, value, num_samples in execute(
        f"SELECT series_id, start_at, value, num_samples FROM {head}"
    ):
        if series_id in wanted:
            for resolution in (each for each in Resolution.values if asked in (None, each)):
                yield (series_id, resolution, start_at - start_at % resolution), value, num_samples


_SERIES = "SELECT id, source_id, engine, model_name, metric, cache_tier, detail FROM dashboard_series"
_TOTALS = "SELECT id, model_name, metric, cache_tier, detail FROM dashboard_totalseries"
