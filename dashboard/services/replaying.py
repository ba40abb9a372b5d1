"""Goes on with replays, a turn at a time: reads the trace through once, then books its requests portion by portion.

What is booked and how far that is change in one transaction, under a claim; a worker that dies leaves nothing half
booked. Between turns a run stays in its worker's memory, which others leave to it for a while; whoever goes on without
it goes through the same requests again from the start and books only what is not booked yet.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import TYPE_CHECKING

import redis
from django.db import DatabaseError, DataError, transaction
from django.db.models import Q, QuerySet

from dashboard import valkey
from dashboard.charts.words import span
from dashboard.models import Replay, Source
from dashboard.replay_booking import Booked
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.services import chunks
from dashboard.services.amounts import Amount
from dashboard.services.increases import series_ids
from dashboard.services.recording import publish_tick
from dashboard.services.replays import GOING_ON, LONG_AGO
from dashboard.sources.adapter import Key
from dashboard.sources.reading import Reading

if TYPE_CHECKING:
    from dashboard.replay_run import Run, Scan

logger = logging.getLogger(__name__)

TURN_SECONDS = 8  # of one of a worker's threads; scrapes go on in the others
CLAIM_SECONDS = 120  # longer than a portion of the largest requests can take
KEPT_SECONDS = 60  # a worker that has it in memory is waited for, in case it lives
_COMMIT_SECONDS = 0.5
_COMMIT_AMOUNTS = 20_000  # a quarter of a second of writing; of a pause a second of reading would be ten times as many
_DAY = 86_400
_AHEAD_SECONDS = 60  # of another machine's clock
_OWN_ERROR = "It was ended by an error of Tierscope's own, which the worker's log tells."

WORKER = f"{os.getpid()}-{token_hex(8)}"
Clock = Callable[[], datetime]
_held: "dict[int, Scan | Run]" = {}


def unfinished_ids(now: datetime, worker: str = WORKER) -> list[int]:
    """Replays that this worker may go on with, the oldest first."""
    return list(_free(now, worker).order_by("pk").values_list("pk", flat=True))


def take_turn(replay_id: int, *, clock: Clock, seconds: float = TURN_SECONDS, worker: str = WORKER) -> bool:
    """Goes on with it for so long; False where somebody else has it, or there is nothing to do."""
    replay = _claim(replay_id, clock(), worker)
    if replay is None:
        return False
    turn = _Turn(replay, clock, clock() + timedelta(seconds=seconds))
    try:
        turn.go_on()
    except (ValueError, OSError) as error:  # of the trace or its file, in a sentence
        _fail(replay, clock(), str(error))
    except _LostError:
        pass
    except DatabaseError as error:  # the next turn begins with what is booked
        if isinstance(error, DataError):  # and would meet again what no column holds
            _fail(replay, clock(), _OWN_ERROR)
        raise
    except Exception:
        _fail(replay, clock(), _OWN_ERROR)
        raise
    finally:
        _mine(replay).update(claimed_until=LONG_AGO)
    return True


def let_go_of_ended() -> None:
    """What lies in memory for replays that nobody goes on with any more."""
    if _held:
        going_on = set(Replay.objects.filter(pk__in=list(_held), state__in=GOING_ON).values_list("pk", flat=True))
        for replay_id in _held.keys() - going_on:
            if held := _held.pop(replay_id, None):
                held.close()


class _LostError(Exception):
    """It was cancelled, removed, or somebody else has it."""


class _Turn:
    """One stretch of work on a replay that is claimed. What it has in memory is its own until it is over."""

    def __init__(self, replay: Replay, clock: Clock, ends_at: datetime) -> None:
        self._replay = replay
        self._clock = clock
        self._ends_at = ends_at
        self._renewed_at = clock()

    @property
    def _has_time(self) -> bool:
        return self._clock() < self._ends_at

    def go_on(self) -> None:
        if not self._replay.extent:
            self._scan()
        if self._replay.extent:
            self._run()

    def _scan(self) -> None:
        from dashboard.replay_run import Scan

        held = _held.pop(self._replay.pk, None)
        scan = held if isinstance(held, Scan) else Scan(self._replay, self._renew)
        with _kept(self._replay, scan):
            while not scan.is_over and self._has_time:
                scan.step()
                if self._clock() - self._renewed_at > timedelta(seconds=_COMMIT_SECONDS):
                    self._update(read_share=scan.share)
                    _tell_pages(self._replay)
            if scan.is_over:
                self._know(scan)

    def _know(self, scan: "Scan") -> None:
        replay = self._replay
        replay.extent = scan.extent()
        replay.starts_at = replay.read_until = _starts_at(replay, scan.starts_at, self._clock())
        replay.num_problems, replay.problems = scan.faults.count, scan.faults.sentences
        names = ("extent", "starts_at", "read_until", "num_problems", "problems")
        self._update(read_share=1.0, **{name: getattr(replay, name) for name in names})

    def _run(self) -> None:
        from dashboard.replay_run import Run

        replay = self._replay
        held = _held.pop(replay.pk, None)
        run = held if isinstance(held, Run) and held.position == _position(replay) else None
        if run is None:
            run = Run(replay, _every(replay), self._renew)
        with _kept(replay, run):
            if not replay.counts:
                self._series(set(run.booking.keys()))  # all of them, with 0, so that charts know them
            self._book(run)

    def _book(self, run: "Run") -> None:
        replay = self._replay
        booked: list[Booked] = []
        committed_at = self._clock()
        while not run.is_over and self._has_time:
            booked += run.step()
            if run.position <= _position(replay) and not run.is_over:
                booked.clear()  # it is in the series already
                self._renew()
            elif len(booked) > _COMMIT_AMOUNTS or self._clock() - committed_at > timedelta(seconds=_COMMIT_SECONDS):
                self._commit(run, booked)
                booked, committed_at = [], self._clock()
        if booked or run.is_over:
            self._commit(run, booked)

    def _series(self, keys: set[Key]) -> dict[Key, int]:
        with self._claimed_as_before(), transaction.atomic():
            self._update()
            return _ids(self._replay.source, keys, self._replay.name)

    def _commit(self, run: "Run", booked: list[Booked]) -> None:
        replay, now = self._replay, self._clock()
        num_done, read_until = run.position
        told = {"num_done": num_done, "read_until": read_until, "counts": run.booking.counts.as_json()}
        if run.is_over:
            told |= {"state": Replay.State.DONE, "finished_at": now, "worker": ""}
        ids = self._series({each.key for each in booked})
        sums = chunks.sums_of([Amount(ids[each.key], each.at, each.value) for each in booked], _oldest(replay))
        with self._claimed_as_before(), transaction.atomic():
            self._update(**told)
            Source.objects.filter(pk=replay.source_id).update(last_ok_at=now)
            chunks.add(sums)
        replay.num_done, replay.read_until = num_done, read_until
        _tell_pages(replay)

    @contextmanager
    def _claimed_as_before(self) -> Iterator[None]:
        """Where a transaction comes to nothing, so does the claim's prolongation."""
        before = self._replay.claimed_until
        try:
            yield
        except BaseException:
            self._replay.claimed_until = before
            raise

    def _update(self, **told: object) -> None:
        """Under the claim: raises _LostError where it is not ours any more."""
        now = self._clock()
        until = now + timedelta(seconds=CLAIM_SECONDS)
        told |= {"kept_until": now + timedelta(seconds=KEPT_SECONDS), "claimed_until": until}
        if not _mine(self._replay).update(**told):
            raise _LostError
        self._replay.claimed_until = until
        self._renewed_at = now

    def _renew(self) -> None:
        """Now and then, where nothing is booked meanwhile: a trace is opened, or gone through again."""
        if self._clock() - self._renewed_at > timedelta(seconds=KEPT_SECONDS / 6):
            self._update()


def _position(replay: Replay) -> tuple[int, int]:
    return replay.num_done, replay.read_until


def _free(now: datetime, worker: str) -> QuerySet[Replay]:
    held = Q(worker=worker) | Q(kept_until__lte=now)
    return Replay.objects.filter(held, state__in=GOING_ON, claimed_until__lte=now)


def _claim(replay_id: int, now: datetime, worker: str) -> Replay | None:
    until = now + timedelta(seconds=CLAIM_SECONDS)
    kept_until = now + timedelta(seconds=KEPT_SECONDS)
    told = {"state": Replay.State.RUNNING, "worker": worker, "claimed_until": until, "kept_until": kept_until}
    if not _free(now, worker).filter(pk=replay_id).update(**told):
        return None
    Replay.objects.filter(pk=replay_id, started_at=None).update(started_at=now)
    return Replay.objects.select_related("source").get(pk=replay_id)


def _mine(replay: Replay) -> QuerySet[Replay]:
    """The row while the claim holds."""
    claimed = {"worker": replay.worker, "claimed_until": replay.claimed_until}
    return Replay.objects.filter(pk=replay.pk, state=Replay.State.RUNNING, **claimed)


def _fail(replay: Replay, now: datetime, error: str) -> None:
    _mine(replay).update(state=Replay.State.FAILED, error=error[:1000], finished_at=now, worker="")
    _tell_pages(replay)


@contextmanager
def _kept(replay: Replay, held: "Scan | Run") -> Iterator[None]:
    """In memory for the next turn; not where it is over or something went wrong."""
    try:
        yield
    except BaseException:
        held.close()
        raise
    if held.is_over:
        held.close()
    else:
        _held[replay.pk] = held


def _starts_at(replay: Replay, told: float | None, now: datetime) -> int:
    """As it was wished, as the trace has `told`, or so that it ends now, on a whole minute. Raises ValueError."""
    if replay.wished_start_at is not None:
        starts_at = int(replay.wished_start_at)
        if starts_at + replay.extent["seconds"] > replay.created_at.timestamp():
            raise ValueError(
                f"From that start on the trace's {span(replay.extent['seconds'])} would end in the future."
            )
        return starts_at
    if replay.keeps_times:
        if told is None:
            raise ValueError("The trace tells no dates, only times from its own beginning; choose when it is to start.")
        if told + replay.extent["seconds"] > now.timestamp() + _AHEAD_SECONDS:
            raise ValueError("The trace's own times lie in the future; choose when it is to start.")
        return int(told)
    return (int(replay.created_at.timestamp()) - int(replay.extent["seconds"]) - 1) // 60 * 60


def _oldest(replay: Replay) -> dict[int, int]:
    """As at its beginning, so that however often it is begun again it books the same."""
    return dict(oldest_starts(retention(), replay.created_at.timestamp()))


def _every(replay: Replay) -> Callable[[int], int]:
    """Readings are as far apart as the finest buckets that are kept at that second."""
    oldest = sorted(_oldest(replay).items())
    return lambda at: next((resolution for resolution, start in oldest if at >= start), _DAY)


def _ids(source: Source, keys: set[Key], engine: str) -> dict[Key, int]:
    told = dict.fromkeys(keys, 0)
    return series_ids(source, Reading(engine, "", datetime.fromtimestamp(0, UTC), False, "told", counters=told))


def _tell_pages(replay: Replay) -> None:
    try:
        publish_tick(valkey.client(), replay.source_id)
    except redis.RedisError:
        return
