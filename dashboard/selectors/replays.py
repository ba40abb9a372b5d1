"""Replays as pages show them, and two or more of them side by side. Reads only.

Runs are compared by the time of the trace, from each one's own beginning, wherever they lie.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from dashboard.models import Replay
from dashboard.selectors.period import Period, between
from dashboard.selectors.tokens import hit_rate_series

MOST_COMPARED = 6
_SHOWN = 100
_LEAST_SECONDS = 60  # the shortest period that a page shows


def newest() -> QuerySet[Replay]:
    """Newest first, at most a hundred."""
    return Replay.objects.select_related("source", "author")[:_SHOWN]


def chosen(ids: Sequence[int]) -> list[Replay]:
    """Those that have begun to be booked, in the order of `ids`."""
    found = Replay.objects.select_related("source").in_bulk(list(ids))
    return [found[pk] for pk in ids if pk in found and found[pk].counts]


def stretch(replay: Replay) -> tuple[int, int] | None:
    """Where it lies, in Unix seconds, as pages ask for it; None until that is known."""
    if replay.starts_at is None or replay.ends_at is None:
        return None
    return replay.starts_at, max(replay.ends_at, replay.starts_at + _LEAST_SECONDS)


def rates_over_time(replay: Replay, now: float) -> dict[str, Any]:
    """{"hours", "rates"}: the middle of each step from the replay's beginning, and its hit rate, None where none."""
    lies = stretch(replay)
    if lies is None:
        return {"hours": [], "rates": []}
    period: Period = between(*lies, now=now)
    series = hit_rate_series(period, engine=replay.name)
    middle = period.step_seconds / 2 - lies[0]
    return {"hours": [(start + middle) / 3600 for start in series["starts"]], "rates": series["total"]}
