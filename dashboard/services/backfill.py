"""Imports a watched engine's history from a Prometheus into the same series, each stretch of time once.

A step of a query is to it what a scrape is to the recorder: the same tables read it, the same rules make increases of
it. What was imported and how far is stored in the transaction that books it, so a crash neither loses nor doubles. Time
since the first live reading, and what another import covers, is left out. Where the live readings are a Prometheus' as
well, an import goes up to the very sample that they begin with.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, QuerySet

from dashboard.chunks import ChunkError
from dashboard.models import Backfill, Source
from dashboard.models_sources import ACCESS_FIELDS
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.services import chunks
from dashboard.services.amounts import Amount
from dashboard.services.increases import increase, observed_keys, series_ids, with_derived
from dashboard.services.sources import access_of, check_url, own_access, target_of
from dashboard.sources.adapter import Key, adapt
from dashboard.sources.detection import adapter_for
from dashboard.sources.exposition import Exposition, ExpositionError
from dashboard.sources.http import ScrapeError
from dashboard.sources.prometheus import (
    MAX_POINTS,
    Ask,
    History,
    HistoryError,
    ask,
    check_selector,
    check_server,
    steps,
)
from dashboard.sources.reading import Reading, readings, total_samples
from dashboard.sources.tables import ADAPTERS
from dashboard.sources.target import Target

CLAIM_SECONDS = 120
# VictoriaMetrics answers for the last 30 s with what was before them (-search.latencyOffset), and what is sent on by a
# vmagent or to a Mimir comes in batches: an import waits until nothing before its end can still come.
SETTLE_SECONDS = 60
TURN_SECONDS = 8  # of one of a worker's threads; scrapes go on in the others
MAX_STEPS = 1_000_000  # of one import: two years by the minute, 8,334 queries
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_ERROR_LENGTH = 1000

Span = tuple[datetime, datetime]
States = dict[Key, int]  # the last value of every counter; an engine in it was seen before


def take_access(wanted: Backfill) -> None:
    """Where nothing is typed, what its source is read with lets it in, if that is the same server."""
    if any(getattr(wanted, name) for name in ACCESS_FIELDS):
        return
    for name, value in own_access(wanted.source, wanted.url).items():
        setattr(wanted, name, value)


def plan(wanted: Backfill, *, now: datetime) -> list[Backfill]:
    """Stores an import for each stretch of `wanted` that nothing covers yet; [] where there is none.

    Raises ValidationError with sentences for a person.
    """
    check(wanted)
    return [_stored(wanted, *span) for span in free_spans(wanted, now)]


def free_spans(wanted: Backfill, now: datetime) -> Iterator[Span]:
    """What is left of it before the first live reading, without other imports that brought anything."""
    source, step = wanted.source, wanted.step_seconds
    start, end = _aligned(wanted.start_at, step), _end(wanted, now)
    others = source.backfills.exclude(num_samples=0, cursor_at__gte=F("end_at")).order_by("start_at")
    for other in others:
        if other.start_at >= end:
            break
        if start < other.start_at:
            yield start, other.start_at
        start = max(start, _aligned(other.end_at, step))
    if start < end:
        yield start, end


def _end(wanted: Backfill, now: datetime) -> datetime:
    """A multiple of the step, for the next import to go on from; or the sample that live readings begin with."""
    source = wanted.source
    end = min(wanted.end_at, source.first_ok_at or now, now)
    if source.selector and end == source.first_ok_at:
        return end
    return datetime.fromtimestamp(int(end.timestamp()) // wanted.step_seconds * wanted.step_seconds, tz=UTC)


def _aligned(moment: datetime, step_seconds: int) -> datetime:
    """The next multiple of the step: what is seen over a step then lies in one bucket."""
    return datetime.fromtimestamp(-(-int(moment.timestamp()) // step_seconds) * step_seconds, tz=UTC)


def check(wanted: Backfill) -> None:
    """Raises ValidationError with sentences for a person."""
    check_url(wanted.url)
    try:
        check_selector(wanted.selector)
    except HistoryError as error:
        raise ValidationError({"selector": str(error)}) from None
    if wanted.source.kind in (Source.Kind.EMBEDDED, Source.Kind.REPLAY):
        raise ValidationError({"source": "Embedded engines and replays have their whole history already."})
    if wanted.start_at >= wanted.end_at:
        raise ValidationError({"end_at": "The end is not after the start."})
    if wanted.start_at < _LONG_AGO:
        raise ValidationError({"start_at": f"No engine has a history from before {_LONG_AGO:%Y}."})
    wanted.clean_fields(exclude=["cursor_at", "claimed_until"])
    num_steps = int((wanted.end_at - wanted.start_at).total_seconds()) // wanted.step_seconds
    if num_steps > MAX_STEPS:
        raise ValidationError(
            {"start_at": f"That is {num_steps:,} steps; at most {MAX_STEPS:,} are imported at once: begin later."}
        )


def check_answers(wanted: Backfill, *, ask: Ask = ask) -> None:
    """Asks the server once. Raises ValidationError where it does not answer as a Prometheus does."""
    check(wanted)
    try:
        check_server(wanted.url, access_of(wanted), ask)
    except (ScrapeError, HistoryError) as error:
        raise ValidationError({"url": f"{error} Nothing was stored."}) from None


def _stored(wanted: Backfill, start: datetime, end: datetime) -> Backfill:
    return Backfill.objects.create(
        source=wanted.source,
        url=wanted.url,
        selector=wanted.selector,
        step_seconds=wanted.step_seconds,
        **{name: getattr(wanted, name) for name in ACCESS_FIELDS},
        start_at=start,
        end_at=end,
        cursor_at=start,
        claimed_until=_LONG_AGO,
    )


def unfinished_ids(now: datetime) -> list[int]:
    """Imports that nobody is on and that are not done: those that did not fail first, and the oldest of them."""
    free = Backfill.objects.filter(cursor_at__lt=F("end_at"), claimed_until__lte=now)
    return list(free.order_by("claimed_until", "pk").values_list("pk", flat=True))


def stop(backfill: Backfill) -> None:
    """Ends it where it is; what is imported stays, and the rest may be imported later."""
    Backfill.objects.filter(pk=backfill.pk).update(end_at=F("cursor_at"))


def advance(backfill_id: int, *, now: datetime, ask: Ask = ask) -> bool:
    """Imports the next piece; False where there was nothing to do yet, another worker is on it, or it failed."""
    backfill = _claim(backfill_id, now)
    if backfill is None:
        return False
    if is_settling(backfill, now):
        _mine(backfill).update(claimed_until=backfill.end_at + timedelta(seconds=SETTLE_SECONDS))
        return False
    try:
        amounts, states, num_samples, until = _piece(backfill, _settled_end(backfill, now), ask)
    except (ScrapeError, HistoryError, ExpositionError) as error:
        # The claim stays for its time: a server that fails is asked again in two minutes, not at once.
        _mine(backfill).update(last_error=str(error)[:_ERROR_LENGTH])
        return False
    if not _mine(backfill).exists():
        return False
    ids = _series_ids(backfill.source, amounts)
    oldest = oldest_starts(retention(), now.timestamp())
    sums = chunks.sums_of([Amount(ids[key], at, value) for key, at, value in amounts], oldest)
    told = {"cursor_at": until, "state": _as_json(states), "num_samples": F("num_samples") + num_samples}
    try:
        with transaction.atomic():
            is_mine = _mine(backfill).update(claimed_until=_LONG_AGO, last_error="", **told)
            if is_mine:
                chunks.add(sums)
    except ChunkError as error:
        _mine(backfill).update(last_error=str(error)[:_ERROR_LENGTH])
        return False
    return bool(is_mine)


def _claim(backfill_id: int, now: datetime) -> Backfill | None:
    until = now + timedelta(seconds=CLAIM_SECONDS)
    free = Backfill.objects.filter(pk=backfill_id, cursor_at__lt=F("end_at"), claimed_until__lte=now)
    if not free.update(claimed_until=until):
        return None
    return Backfill.objects.select_related("source__mapping", "source__discovery").get(pk=backfill_id)


def _mine(backfill: Backfill) -> QuerySet[Backfill]:
    return Backfill.objects.filter(pk=backfill.pk, claimed_until=backfill.claimed_until, cursor_at=backfill.cursor_at)


def is_settling(backfill: Backfill, now: datetime) -> bool:
    """Whether all that is old enough is imported, and the rest has to wait."""
    return _settled_end(backfill, now) == backfill.cursor_at < backfill.end_at


def _settled_end(backfill: Backfill, now: datetime) -> datetime:
    """How far it may go now: its end, or as many whole steps as are old enough."""
    old_enough = now - timedelta(seconds=SETTLE_SECONDS)
    if old_enough >= backfill.end_at:
        return backfill.end_at
    step = timedelta(seconds=backfill.step_seconds)
    return backfill.cursor_at + max((old_enough - backfill.cursor_at) // step, 0) * step


Booked = tuple[Key, int, int]  # what, at which second, how much


def _piece(backfill: Backfill, settled: datetime, ask: Ask) -> tuple[list[Booked], States, int, datetime]:
    """At most MAX_POINTS steps after the cursor, and the end where that lies between two. The first import's first step
    is only what increases begin from.
    """
    first = backfill.cursor_at == backfill.start_at
    step = timedelta(seconds=backfill.step_seconds)
    start = backfill.cursor_at if first else backfill.cursor_at + step
    until = min(backfill.cursor_at + (MAX_POINTS - 1) * step, settled)
    target = target_of(backfill.source)
    access = access_of(backfill)
    history = History(backfill.url, backfill.selector, access)
    adapter = target.typed or ADAPTERS.get(target.kind)
    states = _from_json(backfill.state)
    booked: list[Booked] = []
    num_samples = 0
    last = start + (until - start) // step * step
    stretches = [(start, until, step)]
    if until >= backfill.end_at > last:
        stretches, last = [*stretches, (until, until, until - last)], until
    for begin, end, seen_over in stretches:
        half = int(seen_over.total_seconds()) // 2
        for second, exposition in steps(
            history, adapter, begin.timestamp(), end.timestamp(), backfill.step_seconds, ask
        ):
            seen = _readings(exposition, target, backfill.source.name, second)
            num_samples += total_samples(seen)  # what is skipped (NaN, negative) is not imported
            for reading in seen:
                booked += _increases(reading, states, second - half)
    return booked, states, num_samples, last


def _readings(exposition: Exposition, target: Target, name: str, second: int) -> list[Reading]:
    """None where an engine was there and told nothing that a table knows."""
    try:
        adapter = adapter_for(exposition, target.kind, target.typed)
    except ExpositionError:
        return []
    return readings(adapt(exposition, adapter), at=datetime.fromtimestamp(second, tz=UTC), prefix=name)


def _increases(reading: Reading, states: States, at: int) -> Iterator[Booked]:
    """As the recorder has it: the first sight of an engine is a baseline, a smaller value a restart."""
    counters = {_of_engine(key, reading): value for key, value in reading.counters.items()}
    is_first = not any(key.engine == reading.engine for key in states)
    grown = {key: increase(states.get(key), value, is_baseline=is_first) for key, value in counters.items()}
    states.update(counters)
    yield from ((key, at, value) for key, value in with_derived(reading, grown).items() if value)
    yield from ((_of_engine(key, reading), at, value) for key, value in reading.gauges.items())
    yield from ((key, at, 1) for key in observed_keys(reading))


def _of_engine(key: Key, reading: Reading) -> Key:
    return Key(reading.engine, key.model_name, key.metric, key.cache_tier, key.detail)


def _series_ids(source: Source, booked: list[Booked]) -> Mapping[Key, int]:
    engines = {key.engine for key, _, _ in booked}
    ids: dict[Key, int] = {}
    for engine in engines:
        of_engine = {key: 0 for key, _, _ in booked if key.engine == engine}
        ids |= series_ids(source, Reading(engine, "", _LONG_AGO, False, "told", counters=of_engine))
    return ids


def _as_json(states: States) -> list[list[str | int]]:
    return [[*key, value] for key, value in sorted(states.items())]


def _from_json(told: list[list[Any]]) -> States:
    return {Key(*key): value for *key, value in told}
