"""What readings change: loaded for many engine runs at once, reckoned in memory, stored at once. Knows no claims.

Loading and reckoning need no lock, so that the one under which it is stored is short. `store` refuses where a run was
changed by somebody else since it was loaded: then nothing of it is true any more.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from dashboard import counters
from dashboard.models import EngineRun, Series, Source
from dashboard.services import head
from dashboard.services.amounts import Amount, Sums
from dashboard.services.increases import (
    COLUMNS,
    Columns,
    columns_of,
    create_series,
    increase,
    observed_keys,
    wanted_keys,
    with_derived,
)
from dashboard.services.rows import execute_rows, fetch_of, moment_of
from dashboard.sources.adapter import Key
from dashboard.sources.reading import Reading

Read = tuple[Source, Reading]
Place = tuple[int, str]  # source, engine
RunName = tuple[int, str, str]  # source, engine, boot
_METRIC = COLUMNS.index("metric")


class ChangedError(Exception):
    """A run was changed, or removed, since it was loaded."""


class DamagedError(Exception):
    """What a run's counters stood at cannot be read; the message is a sentence for a person."""


@dataclass
class _Run:
    """`pk` and `stored_at` are None until it is stored; `states`: series id → value."""

    pk: int | None = None
    stored_at: datetime | None = None
    read_at: datetime | None = None
    is_read: bool = False  # since it was loaded
    states: dict[int, int] = field(default_factory=dict)


class Ledger:
    """Of these readings, in their order. `take`, then `store` inside a transaction that holds their sources' rows.

    Raises DamagedError: an increase that is reckoned from nothing would be all that an engine ever counted.
    """

    def __init__(self, reads: Sequence[Read]) -> None:
        self._reads = reads
        self._observed = [observed_keys(reading) for _, reading in reads]
        self._wanted = [wanted_keys(reading, seen) for (_, reading), seen in zip(reads, self._observed, strict=True)]
        self._runs = _load_runs(reads)
        self._totals: dict[int, int] = {}
        self._series = self._load_series()
        self._amounts: list[Amount] = []
        self._sums = Sums({}, {})

    def missing(self) -> set[tuple[int, str, Columns]]:
        """Series that there are none of yet."""
        found: set[tuple[int, str, Columns]] = set()
        for (source, reading), wanted in zip(self._reads, self._wanted, strict=True):
            series = self._series[source.pk, reading.engine]
            found |= {
                (source.pk, reading.engine, columns) for columns in map(columns_of, wanted) if columns not in series
            }
        return found

    def create(self, missing: Iterable[tuple[int, str, Columns]]) -> None:
        create_series(missing)
        self._series = self._load_series()

    def take(self) -> None:
        """Reckons what every reading adds. One that is not newer than what is booked of its run adds nothing."""
        for (source, reading), wanted, seen in zip(self._reads, self._wanted, self._observed, strict=True):
            self._take(source, reading, wanted, seen, self._runs[source.pk, reading.engine, reading.boot_id])
        self._sums = head.sums_of(self._amounts, self._totals)

    def store(self) -> None:
        """Raises ChangedError."""
        self._create_runs()
        adapt = connection.ops.adapt_datetimefield_value
        known = [run for run in self._runs.values() if run.stored_at and run.is_read]
        rows = [(run.pk, adapt(run.stored_at), adapt(run.read_at), counters.pack(run.states)) for run in known]
        if execute_rows(_READ, sorted(rows), ("bigint", "timestamptz", "timestamptz", "bytea")) != len(rows):
            raise ChangedError
        head.add(self._sums)

    # -- one reading after the other -----------------------------------------------------------------------------------
    def _take(self, source: Source, reading: Reading, wanted: set[Key], seen: list[Key], run: _Run) -> None:
        if run.read_at is not None and reading.at <= run.read_at and reading.is_dated:
            return  # of what we read at our own time the order is that of the claims, also where the clock was set back
        moment = _moment(reading, run.read_at, source.interval_seconds)
        series = self._series[source.pk, reading.engine]
        ids = {key: series[columns_of(key)] for key in wanted}
        amounts = [
            *((key, value) for key, value in _grown(reading, run, ids, series).items() if value),
            *reading.gauges.items(),
            *((key, 1) for key in seen),
        ]
        self._amounts += [Amount(ids[key], moment, value) for key, value in amounts]
        run.read_at, run.is_read = reading.at, True

    # -- the database --------------------------------------------------------------------------------------------------
    def _load_series(self) -> dict[Place, dict[Columns, int]]:
        found: dict[Place, dict[Columns, int]] = {(source.pk, reading.engine): {} for source, reading in self._reads}
        for pk, total_id, source_id, engine, *columns in fetch_of(_LOAD_SERIES, {place[0] for place in found}):
            if (series := found.get((source_id, engine))) is not None:
                series[tuple(columns)] = pk
                if total_id is not None and columns[_METRIC] not in Series.GAUGES:
                    self._totals[pk] = total_id
        return found

    def _create_runs(self) -> None:
        new = [(name, run) for name, run in self._runs.items() if run.pk is None]
        rows = EngineRun.objects.bulk_create(
            EngineRun(
                source_id=source_id,
                engine=engine,
                boot_id=boot_id,
                read_at=run.read_at,
                counters=counters.pack(run.states),
            )
            for (source_id, engine, boot_id), run in new
            if run.read_at is not None
        )
        for (_, run), row in zip(new, rows, strict=True):
            run.pk = row.pk


def _grown(reading: Reading, run: _Run, ids: Mapping[Key, int], series: Mapping[Columns, int]) -> dict[Key, int]:
    """By how much each counter grew; `run` knows its new values after that."""
    is_baseline = run.read_at is None and not reading.starts_from_zero
    values = {ids[key]: value for key, value in reading.counters.items()}
    renamed = _renamed(reading, run, ids, series)
    before = run.states | {new: run.states[old] for new, old in renamed.items()}
    grown = {
        key: increase(before.get(ids[key]), value, is_baseline=is_baseline) for key, value in reading.counters.items()
    }
    for old in renamed.values():
        del run.states[old]  # the old name may come back
    run.states |= values
    return with_derived(reading, grown)


def _renamed(reading: Reading, run: _Run, ids: Mapping[Key, int], series: Mapping[Columns, int]) -> dict[int, int]:
    """New series id → old, of counters that only have a new model name.

    A model that is served under another name keeps its counters: one that comes, not smaller than the one of its kind
    that is gone, goes on from there. Its whole value would otherwise be counted a second time.
    """
    new = [key for key in reading.counters if ids[key] not in run.states]
    gone = run.states.keys() - {ids[key] for key in reading.counters}
    if not (new and gone):
        return {}
    went: dict[Columns, list[int]] = defaultdict(list)
    for columns, pk in series.items():
        if pk in gone:
            went[columns[1:]].append(pk)
    come = Counter(columns_of(key)[1:] for key in new)
    pairs = {key: went[kind] for key in new if come[kind := columns_of(key)[1:]] == len(went.get(kind, ())) == 1}
    return {ids[key]: old for key, (old,) in pairs.items() if reading.counters[key] >= run.states[old]}


def _moment(reading: Reading, previous: datetime | None, interval_seconds: int) -> int:
    """The second an increase is booked at: the middle of the interval that it was seen over.

    Scrapes fall on multiples of the interval give or take a second; their middles never stray over a bucket's edge, so
    no bucket gets two intervals and its neighbour none. After a gap it is near the end: when it was seen, not guessed.
    """
    interval = timedelta(seconds=interval_seconds)
    is_later = previous is not None and reading.at > previous
    seen_over = min(interval, reading.at - previous) if previous and is_later else interval
    return int((reading.at - seen_over / 2).timestamp())


def _load_runs(reads: Sequence[Read]) -> dict[RunName, _Run]:
    found = {(source.pk, reading.engine, reading.boot_id): _Run() for source, reading in reads}
    boots = sorted({boot_id for _, _, boot_id in found})
    sql = _LOAD_RUNS.replace("{boots}", ", ".join(["%s"] * len(boots)))
    for pk, told, packed, *name in fetch_of(sql, {source_id for source_id, _, _ in found}, boots):
        if (run := found.get((name[0], name[1], name[2]))) is not None:
            read_at = moment_of(told)
            run.pk, run.stored_at, run.read_at = pk, read_at, read_at
            run.states = _states(pk, packed, name[1])
    return found


def _states(run_id: int, packed: bytes, engine: str) -> dict[int, int]:
    try:
        return counters.unpack(packed)
    except counters.CountersError as error:
        raise DamagedError(
            f"What the counters of {engine} stood at cannot be read ({error}). Restore a backup, restart the engine"
            f" where it is one of ours, or remove row {run_id} of dashboard_enginerun, so that it begins anew."
        ) from None


_LOAD_RUNS = """
SELECT id, read_at, counters, source_id, engine, boot_id FROM dashboard_enginerun
WHERE source_id IN ({ids}) AND boot_id IN ({boots})
"""
_LOAD_SERIES = """
SELECT id, total_id, source_id, engine, model_name, metric, cache_tier, detail FROM dashboard_series
WHERE source_id IN ({ids})
"""
_READ = """
WITH told(id, stored_at, read_at, counters) AS ({rows})
UPDATE dashboard_enginerun SET read_at = told.read_at, counters = told.counters
FROM told WHERE dashboard_enginerun.id = told.id AND dashboard_enginerun.read_at = told.stored_at
"""
