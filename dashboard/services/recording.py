"""Records what sources say: claims sources, reads them, and books the increases into buckets, all or nothing.

What one look at a source brings is booked in one transaction, often with what looks at others bring: counter states and
buckets change together, so a crash at any point neither loses nor doubles a token. Knows nothing about retention.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import redis
from django.db import DatabaseError, transaction
from django.db import connection as db
from django.db.models import Q, prefetch_related_objects

from dashboard import valkey
from dashboard.models import Source
from dashboard.services import claims
from dashboard.services.ledger import ChangedError, DamagedError, Ledger
from dashboard.services.rows import execute_rows
from dashboard.services.sources import target_of
from dashboard.sources.adapter import Adapted
from dashboard.sources.detection import read
from dashboard.sources.embedded import Published, published
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.reading import Reading, readings, total_samples
from dashboard.sources.target import Target
from dashboard.sources.watched import Fetch, read_watched

_log = logging.getLogger(__name__)

MAX_FETCHES = 32  # at once in a worker's thread: a rack that is gone delays the others by seconds, not by minutes
# Sources that one message is about. All of them silent takes 3 rounds of http.TOTAL_SECONDS: less than claims.SECONDS.
MAX_TOGETHER = 96
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
    return next(iter(claim_many([source_id], now)), None)


def claim_many(source_ids: Iterable[int], now: datetime) -> list[Source]:
    """Those of the sources that this caller is the one to scrape now."""
    rows = Source.objects.filter(_IS_READ, pk__in=list(source_ids))
    rows = rows.defer(*_NOT_NEEDED)
    mine = claims.claim_many(rows, lambda source: source.interval_seconds, now)
    # Two queries and their 80 columns' SQL are a tenth of a recording, and most have neither.
    prefetch_related_objects([source for source in mine if source.mapping_id or source.discovery_id], *_RELATED)
    return mine


_RELATED = ("mapping", "discovery")
_NOT_NEEDED = (
    *("last_scraped_at", "last_ok_at", "last_error", "last_duration_seconds", "last_num_samples"),
    *("first_ok_at", "gone_at", "is_enabled", "typed_prefill", "typed_loads"),
)


def record(source_id: int, *, now: datetime, connection: redis.Redis, fetch_text: Fetch = fetch_target) -> bool:
    """Scrapes and books one due source. False where there was nothing to do; what went wrong is kept on the source."""
    source = claim(source_id, now)
    if source is None:
        return False
    if source.kind == Source.Kind.EMBEDDED:
        return bool(book_looks([(source, _look_at_embedded(source, connection, now))]))
    look = _look(target_of(source), source.name, connection, fetch_text, lambda: now)
    return bool(book_looks([(source, look)]))


def record_many(
    source_ids: Iterable[int],
    *,
    clock: Callable[[], datetime],
    connection: redis.Redis,
    fetch_text: Fetch = fetch_target,
) -> list[int]:
    """Scrapes watched sources side by side and books them as they come; which were booked.

    Only fetching and reading run in threads: one silent engine costs the others nothing, and the database one writer.
    What has come while others were booked is booked together. Raises the first DatabaseError once all had their turn.
    """
    with ThreadPoolExecutor(MAX_FETCHES) as pool:
        looks = {
            pool.submit(_look, target_of(source), source.name, connection, fetch_text, clock): source
            for source in claim_many(source_ids, clock())
        }
        booked: list[int] = []
        errors: list[DatabaseError] = []
        waited_for = set(looks)
        while waited_for:
            come, waited_for = wait(waited_for, return_when=FIRST_COMPLETED)
            try:
                booked += book_looks([(looks[look], look.result()) for look in come])
            except DatabaseError as error:
                errors.append(error)
    if errors:
        raise errors[0]
    return booked


@dataclass(frozen=True)
class Look:
    """What came of looking at a source at one moment; `error` says why nothing did."""

    at: datetime
    seconds: float
    found: tuple[Reading, ...] = ()
    problems: tuple[str, ...] = ()
    error: str = ""
    kind: str = ""  # what a watched engine's text was read as


def _look(target: Target, name: str, connection: redis.Redis, fetch_text: Fetch, clock: Callable[[], datetime]) -> Look:
    began = time.monotonic()
    try:
        adapted = read_watched(target, connection, fetch_text, clock())
    except (ScrapeError, ExpositionError, redis.RedisError) as error:
        return Look(clock(), time.monotonic() - began, error=str(error) or type(error).__name__)
    except Exception as error:  # what nobody thought of ends one look, not those of the others
        _log.exception("The source %s could not be read.", name)
        told = f"It could not be read ({type(error).__name__}); the worker's log says more."
        return Look(clock(), time.monotonic() - began, error=told)
    at = clock()
    found = readings(adapted, at=adapted.at or at, prefix=name, is_dated=adapted.at is not None)
    return Look(at, time.monotonic() - began, tuple(found), tuple(_remarks(adapted)), kind=adapted.kind)


def _remarks(adapted: Adapted) -> Iterable[str]:
    yield from adapted.problems
    if not adapted.models:
        yield "The engine tells no prompt or cache counters yet."


def _look_at_embedded(source: Source, connection: redis.Redis, now: datetime) -> Look:
    began = time.monotonic()
    try:
        found, problems = _read_embedded(source, connection, now)
    except redis.RedisError as error:
        return Look(now, time.monotonic() - began, error=str(error) or type(error).__name__)
    return Look(now, time.monotonic() - began, tuple(found), tuple(problems))


Seen = tuple[Source, Look]


def book_looks(seen: Sequence[Seen]) -> list[int]:
    """Ends the claims and books what was read, all in one transaction; which sources were booked.

    Where that cannot be, for one of them changed meanwhile or has what no column holds, each is booked by itself.
    """
    for source, look in seen:
        if look.error:
            _finish(source, look, error=look.error)
    good = [(source, look) for source, look in seen if not look.error]
    try:
        return _book_together(good)
    except (ChangedError, DamagedError, DatabaseError):
        if len(good) == 1:
            return _book_alone(*good[0])
    errors: list[DatabaseError] = []
    booked: list[int] = []
    for each in good:
        try:
            booked += _book_alone(*each)
        except DatabaseError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return booked


def _book_alone(source: Source, look: Look) -> list[int]:
    try:
        return _book_together([(source, look)])
    except ChangedError:
        return []  # the claim ran out and another worker scraped since: what was read here is older than that
    except DamagedError as error:
        _log.error("The source %s is not booked. %s", source.name, error)
        _finish(source, look, error=str(error))
        return []


def _book_together(seen: Sequence[Seen]) -> list[int]:
    """Raises ChangedError where a claim or a run is not as it was, and DamagedError: nothing is booked then."""
    if not seen:
        return []
    ledger = Ledger([(source, reading) for source, look in seen for reading in look.found])
    if missing := ledger.missing():
        with transaction.atomic():
            _hold(seen)
            ledger.create(missing)
    ledger.take()
    with transaction.atomic():
        _let_commit_be_late()
        _finish_all(seen)
        _note_kinds(seen)
        ledger.store()
    return [source.pk for source, _ in seen]


def _hold(seen: Sequence[Seen]) -> None:
    """Locks the sources' rows. Raises ChangedError unless each is still claimed by us."""
    claimed = {source.pk: source.due_at for source, _ in seen}
    rows = Source.objects.select_for_update().filter(pk__in=list(claimed)).order_by("pk")
    if dict(rows.values_list("pk", "due_at")) != claimed:
        raise ChangedError


def _let_commit_be_late() -> None:
    """PostgreSQL need not wait for its disk. What a crash of it takes back is taken back as a whole, counters' states
    with the buckets: the next reading brings it again.
    """
    if db.vendor == "postgresql":
        with db.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO OFF")


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
    runs = source.runs.values_list("engine", "boot_id", "read_at")  # without their counters, some KB each
    booked = {(engine, boot_id): read_at for engine, boot_id, read_at in runs}
    return (entry for entry in entries if entry.at > booked.get((entry.engine, entry.boot_id), _LONG_AGO))


def next_due(now: datetime, interval_seconds: int) -> datetime:
    """The next multiple of the interval on the wall clock, so that every source's scrapes line up with the buckets."""
    seconds = int(now.timestamp())
    return datetime.fromtimestamp(seconds - seconds % interval_seconds + interval_seconds, tz=UTC)


def _finish(source: Source, look: Look, *, error: str) -> None:
    """Ends the claim of one that could not be read, unless it is no longer ours."""
    Source.objects.filter(pk=source.pk, due_at=source.due_at).update(
        due_at=next_due(look.at, source.interval_seconds),
        last_scraped_at=look.at,
        last_duration_seconds=look.seconds,
        last_error=error[:_ERROR_LENGTH],
    )


def _note_kinds(seen: Sequence[Seen]) -> None:
    """What each text was read as, where that is news."""
    for source, look in seen:
        if look.kind and look.kind != source.detected_kind:
            Source.objects.filter(pk=source.pk).update(detected_kind=look.kind)


def _finish_all(seen: Sequence[Seen]) -> None:
    """Ends the claims. Raises ChangedError unless each is still ours; holds their sources' rows from then on."""
    adapt = db.ops.adapt_datetimefield_value
    rows = [
        (
            source.pk,
            adapt(source.due_at),
            adapt(next_due(look.at, source.interval_seconds)),
            adapt(look.at),
            adapt(min((each.at for each in look.found), default=look.at)),
            look.seconds,
            "\n".join(look.problems)[:_ERROR_LENGTH],
            total_samples(look.found),
        )
        for source, look in seen
    ]
    sql = _FINISH_IN_ORDER if db.vendor == "postgresql" else _FINISH
    if execute_rows(sql, sorted(rows), _TYPES) != len(rows):
        raise ChangedError


_TYPES = ("bigint", *["timestamptz"] * 4, "double precision", "text", "bigint")
_FINISH = """
WITH told(id, claimed_at, due_at, at, first_at, seconds, problems, num_samples) AS ({rows})
UPDATE dashboard_source SET due_at = told.due_at, last_scraped_at = told.at, last_duration_seconds = told.seconds,
first_ok_at = COALESCE(first_ok_at, told.first_at), last_ok_at = told.at, last_num_samples = told.num_samples,
last_error = told.problems
FROM told WHERE dashboard_source.id = told.id AND dashboard_source.due_at = told.claimed_at
"""
# PostgreSQL would take the rows in the order of its plan: two that meet, after a claim ran out, could each wait for the
# other.
_FINISH_IN_ORDER = _FINISH.replace(
    "UPDATE dashboard_source",
    """, held AS MATERIALIZED (
    SELECT source.id FROM dashboard_source AS source JOIN told ON told.id = source.id ORDER BY 1
    FOR NO KEY UPDATE OF source
)
UPDATE dashboard_source""",
).replace("FROM told WHERE", "FROM told JOIN held ON held.id = told.id WHERE")


def publish_tick(connection: redis.Redis, source_id: int) -> None:
    """Tells open pages that there is something new to draw. Without Valkey they see it at their next reload."""
    with suppress(redis.RedisError):
        connection.publish(valkey.TICK_CHANNEL, str(source_id))
