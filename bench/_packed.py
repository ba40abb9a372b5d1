"""Stores buckets that were reckoned elsewhere, packed, as the recorder would have left them. Measures nothing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from dashboard.chunks import Buckets, pack, place_of
from dashboard.selectors.runs import Counted, chunks_of
from dashboard.services.rows import execute_rows
from dashboard.services.totals import totals_of

Row = tuple[int, int, int, int, int]  # series, resolution, start, value, number of samples
_TOGETHER = 500


def store(rows: Iterable[Row]) -> int:
    """Of a store that has none of them; rows of one series and resolution lie together. How many there were."""
    from dashboard.models import Series, TotalSeries

    totals: dict[tuple[int, int, int], Buckets] = defaultdict(Buckets.empty)
    of: dict[int, int | None] = {}
    counts = [0]

    def told() -> Iterator[tuple[int, int, int, bytes]]:
        for (series_id, resolution), run in groupby(rows, lambda row: row[:2]):
            if series_id not in of:
                of[series_id] = totals_of([series_id]).get(series_id)
            chunks: dict[int, Buckets] = defaultdict(Buckets.empty)
            for _, _, start_at, value, num_samples in run:
                counts[0] += 1
                chunk_start, index = place_of(start_at, resolution)
                _add(chunks[chunk_start], index, value, num_samples)
                if (total_id := of[series_id]) is not None:
                    _add(totals[total_id, resolution, chunk_start], index, value, num_samples)
            yield from ((series_id, resolution, start, pack(chunk)) for start, chunk in chunks.items())

    _put(Series, told())
    _put(TotalSeries, ((*place, pack(chunk)) for place, chunk in totals.items()))
    return counts[0]


def _add(chunk: Buckets, index: int, value: int, num_samples: int) -> None:
    chunk.values[index] += value
    chunk.num_samples[index] += num_samples


def _put(of: Counted, packed: Iterator[tuple[int, int, int, bytes]]) -> None:
    sql = f"INSERT INTO {chunks_of(of)} (series_id, resolution, start_at, packed) {{rows}}"
    together: list[tuple[int, int, int, bytes]] = []
    for each in packed:
        together.append(each)
        if len(together) == _TOGETHER:
            execute_rows(sql, together, ("bigint", "integer", "bigint", "bytea"))
            together = []
    execute_rows(sql, together, ("bigint", "integer", "bigint", "bytea"))
