"""Records what sources say: claims a source, reads it, and books the increases into buckets, all or nothing.

One look at a source is one transaction: counter states and buckets change together, so a crash at any point neither
loses nor doubles a token. Knows nothing about retention or charts.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from dashboard import valkey
from dashboard.models import EngineRun, Source
from dashboard.services import claims
from dashboard.services.buckets import Amount, add_amounts
from dashboard.services.increases import observed_keys, take_increases
from dashboard.services.sources import target_of
from dashboard.sources.adapter import Adapted
from dashboard.sources.detection import read
from dashboard.sources.embedded import Published, published
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.reading import Reading, readings, total_samples
from dashboard.sources.target import Target
from dashboard.sources.watched import Fetch, read_watched

MAX_FETCHES = 16  # at once in a worker's thread: a rack that is gone delays the others by seconds, not by minutes
# Sources that one message is about. All of them silent takes 3 rounds of http.TOTAL_SECONDS: less than claims.SECONDS.
MAX_TOGETHER = 48
_ERROR_LENGTH = 1000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Readings = tuple[list[Reading], list[str]]  # what was read, and sentences about what could not be


def due_source_ids(now: datetime) -> list[int]:
    """Whose time has come, the longest overdue first."""
    rows = Source.objects.filter(_IS_READ).exclude(due_at__gt=now, due_at__lte=now + claims.SOON)
    told = rows.order_by("due_at").values_list("pk", "due_at", "interval_seconds")
    return [pk for pk, due_at, interval_seconds in told if claims.is_due(due_at, interval_seconds, now)]


_IS_READ = Q(is_enabled=True, gone_at=None) & ~Q(kind=Source.Kind.REPLAY)


def claim(source_id: int, now: datetime) -> Source | None:
    """The source, if this caller is the one that scrapes it now; None where it is not due or another was first."""
    source = Source.objects.filter(_IS_READ, pk=source_id).select_related("mapping", "discovery").first()
    if source is None or not claims.is_due(source.due_at, source.interval_seconds, now):
        return None
    return source if claims.claim(source, now) else None


def record(source_id: int, *, now: datetime, connection: redis.Redis, fetch_text: Fetch = fetch_target) -> bool:
    """Scrapes and books one due source. False where there was nothing to do; what went wrong is kept on the source."""
    source = claim(source_id, now)
    if source is None:
        return False
    if source.kind == Source.Kind.EMBEDDED:
        return _book_look(source, _look_at_embedded(source, connection, now))
    return _book_look(source, _look(target_of(source), source.name, connection, fetch_text, lambda: now))


def record_many(
    source_ids: Iterable[int],
    *,
    clock: Callable[[], datetime],
    connection: redis.Redis,
    fetch_text: Fetch = fetch_target,
) -> list[int]:
    """Scrapes watched sources side by side and books each as it comes; which were booked.

    Only fetching and reading run in threads: one silent engine costs the others nothing, and the database one writer.
    """
    claimed = [source for source_id in source_ids if (source := claim(source_id, clock()))]
    with ThreadPoolExecutor(MAX_FETCHES) as pool:
        looks = {
            pool.submit(_look, target_of(source), source.name, connection, fetch_text, clock): source
            for source in claimed
        }
        return [looks[look].pk for look in as_completed(looks) if _book_look(looks[look], look.result())]


@dataclass(frozen=True)
class _Look:
    """What came of looking at a source at one moment; `error` says why nothing did."""

    at: datetime
    seconds: float
    found: tuple[Reading, ...] = ()
    problems: tuple[str, ...] = ()
    error: str = ""


def _look(
    target: Target, name: str, connection: redis.Redis, fetch_text: Fetch, clock: Callable[[], datetime]
) -> _Look:
    began = time.monotonic()
    try:
        adapted = read_watched(target, connection, fetch_text, clock())
    except (ScrapeError, ExpositionError, redis.RedisError) as error:
        return _Look(clock(), time.monotonic() - began, error=str(error) or type(error).__name__)
    at = clock()
    found = readings(adapted, at=adapted.at or at, prefix=name, is_dated=adapted.at is not None)
    return _Look(at, time.monotonic() - began, tuple(found), tuple(_remarks(adapted)))


def _remarks(adapted: Adapted) -> Iterable[str]:
    yield from adapted.problems
    if not adapted.models:
        yield "The engine tells no prompt or cache counters yet."


def _look_at_embedded(source: Source, connection: redis.Redis, now: datetime) -> _Look:
    began = time.monotonic()
    try:
        found, problems = _read_embedded(source, connection, now)
    except redis.RedisError as error:
        return _Look(now, time.monotonic() - began, error=str(error) or type(error).__name__)
    return _Look(now, time.monotonic() - began, tuple(found), tuple(problems))


def _book_look(source: Source, look: _Look) -> bool:
    """Ends the claim and books what was read, in one transaction; False where nothing was booked."""
    if look.error:
        _finish(source, look, error=look.error)
        return False
    with transaction.atomic():
        if not _finish(source, look, error="\n".join(look.problems)):
            return False  # the claim ran out and another worker scraped since: what was read here is older than that
        for reading in look.found:
            book(source, reading)
    return True


def record_embedded_now(*, now: datetime, connection: redis.Redis) -> bool:
    """Records the embedded engines out of turn: after their stop, what they last published is kept for an hour only."""
    source = Source.objects.filter(kind=Source.Kind.EMBEDDED).first()
    if source is None:
        return False
    Source.objects.filter(pk=source.pk).update(due_at=now)
    return record(source.pk, now=now, connection=connection)


def _read_embedded(source: Source, connection: redis.Redis, now: datetime) -> Readings:
    """Every run seen within the last hour. One engine that publishes nonsense never costs another its readings."""
    entries, problems = published(connection, now)
    found: list[Reading] = []
    for entry in _unread(source, entries):
        try:
            adapted = read(entry.exposition, Source.Kind.TIERSCOPE)
        except ExpositionError as error:
            problems.append(f"{entry.engine}: {error}")
            continue
        problems += adapted.problems
        found += readings(adapted, at=entry.at, prefix="", boot_id=entry.boot_id, starts_from_zero=True, is_dated=True)
    return found, problems


def _unread(source: Source, entries: Iterable[Published]) -> Iterable[Published]:
    """Runs that ended are published for an hour: what is booked already is not parsed again."""
    booked = {(run.engine, run.boot_id): run.read_at for run in source.runs.all()}
    return (entry for entry in entries if entry.at > booked.get((entry.engine, entry.boot_id), _LONG_AGO))


def book(source: Source, reading: Reading) -> bool:
    """Adds one reading to the series; False for one that is not newer than what is booked of that run.

    Must run inside a transaction that holds the source's row.
    """
    run, is_first = EngineRun.objects.select_for_update().get_or_create(
        source=source, engine=reading.engine, boot_id=reading.boot_id, defaults={"read_at": reading.at}
    )
    if not is_first and reading.at <= run.read_at and reading.is_dated:
        return (
            False  # of what we read at our own time the order is that of the claims, also where the clock was set back
        )
    moment = _moment(reading, None if is_first else run.read_at, source.interval_seconds)
    counters = take_increases(source, run, reading, is_first=is_first)
    ids = counters.series_ids
    add_amounts(
        [
            *(Amount(ids[key], moment, value) for key, value in counters.increases.items() if value),
            *(Amount(ids[key], moment, value) for key, value in reading.gauges.items()),
            *(Amount(ids[key], moment, 1) for key in observed_keys(reading)),
        ]
    )
    run.read_at = reading.at
    run.save(update_fields=["read_at"])
    return True


def _moment(reading: Reading, previous: datetime | None, interval_seconds: int) -> int:
    """The second an increase is booked at: the middle of the interval that it was seen over.

    Scrapes fall on multiples of the interval give or take a second; their middles never stray over a bucket's edge, so
    no bucket gets two intervals and its neighbour none. After a gap it is near the end: when it was seen, not guessed.
    """
    interval = timedelta(seconds=interval_seconds)
    is_later = previous is not None and reading.at > previous
    seen_over = min(interval, reading.at - previous) if previous and is_later else interval
    return int((reading.at - seen_over / 2).timestamp())


def next_due(now: datetime, interval_seconds: int) -> datetime:
    """The next multiple of the interval on the wall clock, so that every source's scrapes line up with the buckets."""
    seconds = int(now.timestamp())
    return datetime.fromtimestamp(seconds - seconds % interval_seconds + interval_seconds, tz=UTC)


def _finish(source: Source, look: _Look, *, error: str) -> bool:
    """Ends the claim; False where it is no longer ours."""
    ok = {
        "first_ok_at": Coalesce("first_ok_at", Value(min((each.at for each in look.found), default=look.at))),
        "last_ok_at": look.at,
        "last_num_samples": total_samples(look.found),
    }
    told: dict[str, object] = {} if look.error else ok
    return bool(
        Source.objects.filter(pk=source.pk, due_at=source.due_at).update(
            due_at=next_due(look.at, source.interval_seconds),
            last_scraped_at=look.at,
            last_duration_seconds=look.seconds,
            last_error=error[:_ERROR_LENGTH],
            **told,
        )
    )


def publish_tick(connection: redis.Redis, source_id: int) -> None:
    """Tells open pages that there is something new to draw. Without Valkey they see it at their next reload."""
    with suppress(redis.RedisError):
        connection.publish(valkey.TICK_CHANNEL, str(source_id))
