"""Rows of several files in the order of their times. Knows nothing about what the rows mean.

Files that are in order themselves (rotated logs) are merged as they are read. Those that are not (sessions one after
the other) are first copied to an unnamed temporary file; only a time and a place for each row stay in memory.
"""

import heapq
import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from tiers.traces.limits import Meter
from tiers.traces.request import TraceError
from tiers.traces.rows import Row

_LENGTH_BYTES = 4


def merged(files: list[Iterator[Row]]) -> Iterator[Row]:
    return heapq.merge(*files, key=_at)


def sorted_rows(rows: Iterable[Row], meter: Meter, scratch: Path | None = None) -> Iterator[Row]:
    """Rows of one time stay in their order. The temporary file lies in `scratch`, else where the system has them.

    Raises TraceError where it would have more bytes than the limits allow.
    """
    max_bytes = meter.limits.max_sorted_bytes
    with tempfile.TemporaryFile(prefix="tierscope-trace-", dir=scratch) as file:
        times, places, end = array("d"), array("q"), 0
        for row in rows:
            times.append(_at(row))
            places.append(end)
            end += file.write(_packed(row))
            if end > max_bytes:
                raise TraceError(
                    f"{row.where}: more than {max_bytes:,} bytes to be put in the order of their times; cut the trace, "
                    "or give files that are in order."
                )
        meter.is_sorted(len(times))
        for index in np.argsort(np.frombuffer(times, np.float64), kind="stable") if times else ():
            file.seek(places[index])
            meter.row()
            yield _read(file, times[index])


def _at(row: Row) -> float:
    return row.at or 0.0


def _packed(row: Row) -> bytes:
    text = json.dumps([row.where, row.told]).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text


def _read(file: IO[bytes], at: float) -> Row:
    where, told = json.loads(file.read(int.from_bytes(file.read(_LENGTH_BYTES), "big")))
    return Row(where, told, at)
