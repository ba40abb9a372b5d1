"""How reading a source goes: one word, and a sentence with the reason and when. Knows nothing about what is read."""

from datetime import datetime, timedelta
from enum import StrEnum

from dashboard.charts.words import ago
from dashboard.models import Source
from dashboard.sources.prometheus_now import MAX_AGE_SECONDS

# One scrape may be late and one may fail before anybody is told that the numbers are old.
INTERVALS_UNTIL_STALE = 3


class SourceState(StrEnum):
    """up: read within its last intervals; failing: the newest try went wrong; stale: nobody tried; new: not tried yet;
    off: switched off by an admin; gone: its discovery does not list it any more.
    """

    UP = "up"
    FAILING = "failing"
    STALE = "stale"
    NEW = "new"
    OFF = "off"
    GONE = "gone"


NOT_READ = frozenset({SourceState.FAILING, SourceState.STALE, SourceState.NEW})


def tells_still(source: Source, seen_at: datetime) -> bool:
    """Whether an engine that was last seen then is among what its source told last: replicas go, their source stays."""
    age = _patience(source) + (timedelta(seconds=MAX_AGE_SECONDS) if source.selector else timedelta())
    return source.last_ok_at is None or source.last_ok_at - seen_at <= age


def _patience(source: Source) -> timedelta:
    return timedelta(seconds=INTERVALS_UNTIL_STALE * source.interval_seconds)


def state_of(source: Source, now: datetime) -> SourceState:
    if not source.is_enabled:
        return SourceState.OFF
    if source.gone_at is not None:
        return SourceState.GONE
    if source.last_ok_at is not None and now - source.last_ok_at <= _patience(source):
        return SourceState.UP
    if source.last_scraped_at is not None and source.last_scraped_at != source.last_ok_at:
        return SourceState.FAILING
    return SourceState.NEW if source.last_ok_at is None else SourceState.STALE


def describe(source: Source, now: datetime) -> str:
    """The state's reason and since when, as sentences. They stay the same for a while: screen readers read changes."""
    return " ".join(filter(None, [_told(source, now), source.warning]))


def _told(source: Source, now: datetime) -> str:
    state, read = state_of(source, now), _read(source, now)
    if state is SourceState.FAILING:
        return f"{_reason(source)} {_capital(read)}."
    if state is SourceState.STALE:
        return f"{_capital(read)}, not tried since: is the worker running, and is there room on the database's disk?"
    if state is SourceState.NEW:
        return "Not tried yet: the worker reads it within seconds."
    if source.removed_at is not None:
        return f"It is being removed, with its numbers. {source.last_error}".strip()
    if state is SourceState.OFF:
        return f"Switched off; {read}."
    if state is SourceState.GONE and source.gone_at is not None:
        return f"Not listed by its discovery since {ago((now - source.gone_at).total_seconds())}; {read}."
    remark = f" {source.last_error.strip()}" if source.selector and source.last_error else ""
    return f"{_capital(read)}.{remark}"


def _reason(source: Source) -> str:
    reason = source.last_error.strip() or "It cannot be read"
    return reason if reason.endswith(".") else f"{reason}."


def _read(source: Source, now: datetime) -> str:
    if source.last_ok_at is None:
        return "never read well"
    return f"last read {ago((now - source.last_ok_at).total_seconds())}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
