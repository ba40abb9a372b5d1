"""Records what sources say: claims a source, reads it, and books the increases into buckets, all or nothing.

One look at a source is one transaction: counter states and buckets change together, so a crash at any point neither
loses nor doubles a token. Knows nothing about retention or charts.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import redis
from django.db import transaction

from dashboard import valkey
from dashboard.models import EngineRun, Source
from dashboard.services.buckets import Amount, add_amounts
from dashboard.services.increases import observed_keys, take_increases
from dashboard.services.sources import target_of
from dashboard.sources.detection import read
from dashboard.sources.embedded import Published, published
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.reading import Reading, readings, total_samples
from dashboard.sources.watched import Fetch, read_watched

CLAIM_SECONDS = 60  # longer than any scrape can take (http.TOTAL_SECONDS), so a claim ends only with its holder
_ERROR_LENGTH = 1000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Readings = tuple[list[Reading], list[str]]  # what was read, and sentences about what could not be


def due_source_ids(now: datetime) -> list[int]:
    return list(Source.objects.filter(is_enabled=True, due_at__lte=now).order_by("due_at").values_list("pk", flat=True))


def claim(source_id: int, now: datetime) -> Source | None:
    """The source, if this caller is the one that scrapes it now; None where it is not due or another was first."""
    source = Source.objects.filter(pk=source_id, is_enabled=True, due_at__lte=now).first()
    if source is None:
        return None
    token = now + timedelta(seconds=CLAIM_SECONDS)
    if not Source.objects.filter(pk=source_id, due_at=source.due_at).update(due_at=token):
        return None
    source.due_at = token
    return source


def record(source_id: int, *, now: datetime, connection: redis.Redis, fetch_text: Fetch = fetch_target) -> bool:
    """Scrapes and books one due source. False where there was nothing to do; what went wrong is kept on the source."""
    source = claim(source_id, now)
    if source is None:
        return False
    began = time.monotonic()
    try:
        found, problems = _read(source, now, connection, fetch_text)
    except (ScrapeError, ExpositionError, redis.RedisError) as error:
        _finish(source, now, ok=False, error=str(error) or type(error).__name__, began=began)
        return False
    with transaction.atomic():
        if not _finish(source, now, ok=True, error="\n".join(problems), began=began, num_samples=total_samples(found)):
            return False  # the claim ran out and another worker scraped since: what was read here is older than that
        for reading in found:
            book(source, reading)
    return True


def record_embedded_now(*, now: datetime, connection: redis.Redis) -> bool:
    """Records the embedded engines out of turn: after their stop, what they last published is kept for an hour only."""
    source = Source.objects.filter(kind=Source.Kind.EMBEDDED).first()
    if source is None:
        return False
    Source.objects.filter(pk=source.pk).update(due_at=now)
    return record(source.pk, now=now, connection=connection)


def _read(source: Source, now: datetime, connection: redis.Redis, fetch_text: Fetch) -> Readings:
    if source.kind == Source.Kind.EMBEDDED:
        return _read_embedded(source, connection, now)
    adapted = read_watched(target_of(source), connection, fetch_text)
    problems = [*adapted.problems]
    if not adapted.models:
        problems.append("The engine tells no prompt or cache counters yet.")
    return readings(adapted, at=now, prefix=source.name), problems


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
        found += readings(adapted, at=entry.at, prefix="", boot_id=entry.boot_id, starts_from_zero=True)
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
    if not is_first and reading.at <= run.read_at:
        return False
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
    seen_over = interval if previous is None else min(interval, reading.at - previous)
    return int((reading.at - seen_over / 2).timestamp())


def next_due(now: datetime, interval_seconds: int) -> datetime:
    """The next multiple of the interval on the wall clock, so that every source's scrapes line up with the buckets."""
    seconds = int(now.timestamp())
    return datetime.fromtimestamp(seconds - seconds % interval_seconds + interval_seconds, tz=UTC)


def _finish(source: Source, now: datetime, *, ok: bool, error: str, began: float, num_samples: int = 0) -> bool:
    """Ends the claim; False where it is no longer ours."""
    told: dict[str, object] = {"last_ok_at": now, "last_num_samples": num_samples} if ok else {}
    return bool(
        Source.objects.filter(pk=source.pk, due_at=source.due_at).update(
            due_at=next_due(now, source.interval_seconds),
            last_scraped_at=now,
            last_duration_seconds=time.monotonic() - began,
            last_error=error[:_ERROR_LENGTH],
            **told,
        )
    )


def publish_tick(connection: redis.Redis, source_id: int) -> None:
    """Tells open pages that there is something new to draw. Without Valkey they see it at their next reload."""
    with suppress(redis.RedisError):
        connection.publish(valkey.TICK_CHANNEL, str(source_id))
