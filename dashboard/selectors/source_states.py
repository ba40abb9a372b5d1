"""How reading a source goes, in one word. Knows nothing about what is read."""

from datetime import datetime, timedelta
from enum import StrEnum

from dashboard.models import Source

# One scrape may be late and one may fail before anybody is told that the numbers are old.
_INTERVALS_UNTIL_STALE = 3


class SourceState(StrEnum):
    UP = "up"
    STALE = "stale"
    NEVER = "never"
    OFF = "off"


def state_of(source: Source, now: datetime) -> SourceState:
    """up: read within its last intervals; stale: not any more; never: not once; off: switched off by an admin."""
    if not source.is_enabled:
        return SourceState.OFF
    if source.last_ok_at is None:
        return SourceState.NEVER
    patience = timedelta(seconds=_INTERVALS_UNTIL_STALE * source.interval_seconds)
    return SourceState.UP if now - source.last_ok_at <= patience else SourceState.STALE
