"""Adds amounts to the chunks of every resolution, and moves there what has been in the head for a while.

A chunk is read, changed and written by whoever holds its series' row, so that no two do it at once. A move is one
transaction: what it takes from the head is in the chunks of all resolutions, or still in the head. Any number of
workers may move: who comes second to a series finds nothing left. Where a gauge's chunk changes, its total changes with
it, by what its means are more (dashboard/gauge_steps.py). Knows no readings.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType

from django.db import connection, transaction

from dashboard.batches import MANY, batched
from dashboard.chunks import Buckets, ChunkError, pack, place_of, storable
from dashboard.gauge_steps import everything
from dashboard.models import Resolution, Series, TotalChunk, TotalSeries
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.runs import Counted, chunks_of, head_of, opened, packed_of, runs
from dashboard.services.amounts import Amount, ByPlace, Changes, Key, Sums, with_totals
from dashboard.services.amounts import sums_of as _sums_of
from dashboard.services.gauge_totals import GaugeChanges
from dashboard.services.rows import execute_rows, fetch_of
from dashboard.services.totals import gauge_totals_of

_log = logging.getLogger(__name__)

# What stays in the head is read as rows: ten minutes are at most 66 of a series. Each move writes four chunks anew.
HEAD_SECONDS = 600
_SETTLED_SECONDS = 60  # of what is younger, more may come
_TURN_SECONDS = 3_600
_TOGETHER = 100  # series that one transaction moves: some hundredths of a second
# SQLite has no queue of writers: who waits sleeps up to 0.1 s between two tries, and would find it taken each time.
_SQLITE_REST_SECONDS = 0.12
_EMPTY = Buckets.empty()  # never changed


def sums_of(amounts: Iterable[Amount], oldest: Mapping[int, int]) -> Sums:
    """What these come to at every resolution. Needs no lock: make them before one is taken.

    `oldest`: resolution → the first start that is still kept; what is older is left out of that resolution only.
    """
    return _sums_of(amounts, lambda at: _starts(at, oldest))


def add(sums: Sums) -> None:
    """Must run inside a transaction. Amounts of series that are gone are dropped."""
    wanted = {place[0] for place in sums.buckets}
    there = lock(Series, wanted)
    if there != wanted:
        sums = with_totals({place: sum_ for place, sum_ in sums.buckets.items() if place[0] in there})
    gauges = gauge_totals_of(there)
    lock(TotalSeries, {place[0] for place in sums.totals} | set(gauges.values()))
    of_gauges = change(Series, by_chunk(sums.buckets), gauges)
    change(TotalSeries, {**by_chunk(sums.totals), **of_gauges})


def by_chunk(buckets: ByPlace) -> Changes:
    """`buckets` by series, resolution and start."""
    found: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    for (series_id, resolution, start_at), (value, num_samples) in buckets.items():
        chunk_start, index = place_of(start_at, resolution)
        found[series_id, resolution, chunk_start].append((index, value, num_samples))
    return found


def lock(of: Counted, series_ids: Collection[int]) -> set[int]:
    """Those that there are. Not against those who refer to them: PostgreSQL locks a row in two strengths."""
    rows = of._default_manager.select_for_update(no_key=True).order_by("pk")
    found: set[int] = set()
    for together in batched(sorted(series_ids), MANY):
        found |= set(rows.filter(pk__in=together).values_list("pk", flat=True))
    return found


def change(of: Counted, changes: Changes, gauges: Mapping[int, int] = MappingProxyType({})) -> Changes:
    """Of series that the caller holds. A chunk that has nothing left goes.

    What this comes to in totals of `gauges`, series → total: for the caller to change, who holds them, too.
    """
    noted = GaugeChanges(gauges)
    for keys in batched(sorted(changes), _TOGETHER * len(Resolution)):
        stored = _load(of, keys)
        packed, gone = [], []
        for key in keys:
            before = stored.get(key, _EMPTY)
            chunk = _changed(before, changes[key])
            noted.note(key, before, chunk, (index for index, _, _ in changes[key]))
            if chunk.is_empty:
                gone.append(key)
            else:
                packed.append((*key, pack(chunk)))
        execute_rows(_PUT.replace("{table}", chunks_of(of)), packed, ("bigint", "integer", "bigint", "bytea"))
        execute_rows(_REMOVE.replace("{table}", chunks_of(of)), [key for key in gone if key in stored])
    return noted.of_totals()


def settle(*, now: datetime, rest: Callable[[float], None] = time.sleep) -> int:
    """Moves what has been in the head for longer than HEAD_SECONDS; of how many series. Restartable.

    A series with a chunk that cannot be read stays in the head, which is read as well, and keeps no other.
    """
    second = int(now.timestamp())
    oldest = oldest_starts(retention(), second)
    num_moved = 0
    for of in (Series, TotalSeries):
        for number, together in enumerate(batched(_due(of, second - HEAD_SECONDS), _TOGETHER)):
            if number and connection.vendor == "sqlite":
                rest(_SQLITE_REST_SECONDS)
            num_moved += _settle(of, together, second - _SETTLED_SECONDS, oldest)
    return num_moved


def _settle(of: Counted, series_ids: Collection[int], before: int, oldest: Mapping[int, int]) -> int:
    try:
        return _move_in_turns(of, series_ids, before, oldest)
    except ChunkError as error:
        if len(series_ids) > 1:
            return sum(_settle(of, [each], before, oldest) for each in series_ids)
        _log.error("%s Its newest amounts stay in the head.", error)
        return 0


def _move_in_turns(of: Counted, series_ids: Collection[int], before: int, oldest: Mapping[int, int]) -> int:
    """An hour at a time: where nobody packed for a day, a hundred series have a million rows."""
    num_there = 0
    until = None
    while until != before and (first := _first(of, series_ids, before)) is not None:
        until = min(before, first + _TURN_SECONDS)
        with transaction.atomic():
            there = lock(of, series_ids)
            move(of, there, until, oldest)
            _forget(of, set(series_ids) - there)
        num_there = max(num_there, len(there))
    return num_there


def _first(of: Counted, series_ids: Collection[int], before: int) -> int | None:
    sql = _FIRST.format(table=head_of(of), before=int(before), ids="{ids}")
    return min((first for (first,) in fetch_of(sql, series_ids) if first is not None), default=None)


def _forget(of: Counted, gone: Collection[int]) -> None:
    """What was added to series after they were gone, by whoever knew their ids: nothing will ever read it."""
    for table in (head_of(of), chunks_of(of)):
        fetch_of(_FORGET.format(table=table, ids="{ids}"), gone)


def move(of: Counted, series_ids: Collection[int], before: int, oldest: Mapping[int, int]) -> None:
    """What these series, which the caller holds, have in the head from before a second."""
    is_shared = of is TotalSeries and connection.vendor == "postgresql"
    sql = (_TAKE_IN_ORDER if is_shared else _TAKE).format(table=head_of(of), before=int(before), ids="{ids}")
    found: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    known: dict[int, list[tuple[int, int, int]]] = {}  # the same sixty seconds for all of them
    for series_id, at, value, num_samples in fetch_of(sql, series_ids):
        if (places := known.get(at)) is None:
            places = known[at] = [(step, *place_of(start_at, step)) for step, start_at in _starts(at, oldest)]
        for resolution, chunk_start, index in places:
            found[series_id, resolution, chunk_start].append((index, value, num_samples))
    gauges = gauge_totals_of(series_ids) if of is Series else {}
    lock(TotalSeries, set(gauges.values()))
    change(TotalSeries, change(of, found, gauges))


def take_away(series_id: int, total_id: int) -> None:
    """Of a total what one of its series added. Must run inside a transaction, and nobody may write the series."""
    lock(Series, [series_id])
    lock(TotalSeries, [total_id])
    if gauges := gauge_totals_of([series_id]):
        change(TotalSeries, all_of(gauges, is_gone=True))
        return
    for resolution in Resolution.values:
        found: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
        for run in runs([series_id], resolution):
            chunk_start, first = place_of(run.start_at, resolution)
            buckets = enumerate(zip(run.values, run.num_samples, strict=True), first)
            found[total_id, resolution, chunk_start] += [
                (index, -value, -num) for index, (value, num) in buckets if num
            ]
        change(TotalSeries, found)


def remake(total_id: int) -> None:
    """A total of gauges, anew from what is packed of them: where a row that could not be read was deleted."""
    with transaction.atomic():
        ids = lock(Series, Series.objects.filter(total=total_id).values_list("pk", flat=True))
        lock(TotalSeries, [total_id])
        TotalChunk.objects.filter(series=total_id).delete()
        change(TotalSeries, all_of(dict.fromkeys(ids, total_id), is_gone=False))


def all_of(gauges: Mapping[int, int], *, is_gone: bool) -> Changes:
    """What becomes of totals that these gauges leave, or come to."""
    noted = GaugeChanges(gauges)
    for series_id in gauges:
        for resolution, start_at, chunk in packed_of(series_id):
            before, after = (chunk, _EMPTY) if is_gone else (_EMPTY, chunk)
            noted.note((series_id, resolution, start_at), before, after, everything(chunk))
    return noted.of_totals()


def _starts(at: int, oldest: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    for resolution, first in oldest.items():
        if (start_at := at - at % resolution) >= first:
            yield resolution, start_at


def _due(of: Counted, before: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE.format(table=head_of(of)), [before])
        return sorted(series_id for (series_id,) in cursor.fetchall())


def _load(of: Counted, keys: Collection[Key]) -> dict[Key, Buckets]:
    sql = _LOAD.format(table=chunks_of(of), starts=", ".join({str(int(start)) for _, _, start in keys}), ids="{ids}")
    wanted = set(keys)
    return {
        key: opened(of, *key, packed)
        for *told, packed in fetch_of(sql, {series_id for series_id, _, _ in keys})
        if (key := (told[0], told[1], told[2])) in wanted
    }


def _changed(before: Buckets, changes: Iterable[tuple[int, int, int]]) -> Buckets:
    chunk = Buckets(list(before.values), list(before.num_samples))
    values, num_samples = chunk.values, chunk.num_samples
    for index, value, more in changes:
        values[index] = storable(values[index] + value)
        num_samples[index] += more
    return chunk


_DUE = "SELECT DISTINCT series_id FROM {table} WHERE start_at < %s"
_FIRST = "SELECT MIN(start_at) FROM {table} WHERE series_id IN ({ids}) AND start_at < {before}"
_TAKE = """
DELETE FROM {table} WHERE series_id IN ({ids}) AND start_at < {before}
RETURNING series_id, start_at, value, num_samples
"""
# Late readings of several sources come into the same rows of a total: in the order of services/head.py, or each waits
# for the other.
_TAKE_IN_ORDER = """
WITH held AS MATERIALIZED (
    SELECT series_id, start_at FROM {table} WHERE series_id IN ({ids}) AND start_at < {before}
    ORDER BY series_id, start_at FOR UPDATE
)
DELETE FROM {table} AS taken USING held WHERE taken.series_id = held.series_id AND taken.start_at = held.start_at
RETURNING taken.series_id, taken.start_at, taken.value, taken.num_samples
"""
_FORGET = "DELETE FROM {table} WHERE series_id IN ({ids}) RETURNING series_id"
_LOAD = """
SELECT series_id, resolution, start_at, packed FROM {table} WHERE series_id IN ({ids}) AND start_at IN ({starts})
"""
_PUT = """
INSERT INTO {table} (series_id, resolution, start_at, packed) {rows}
ON CONFLICT (series_id, resolution, start_at) DO UPDATE SET packed = excluded.packed
"""
_REMOVE = """
WITH gone(series_id, resolution, start_at) AS ({rows})
DELETE FROM {table} WHERE (series_id, resolution, start_at) IN (SELECT series_id, resolution, start_at FROM gone)
"""
