"""Replays as pages show them, and two or more of them side by side. Reads only.

Runs are compared by the time of the trace, from each one's own beginning, wherever they lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.models import Replay
from dashboard.selectors.period import MAX_SECONDS, Period, between
from dashboard.selectors.tokens import hit_rate_series

MOST_COMPARED = 6
PAGE_SIZE = 50
_LEAST_SECONDS = 60  # the shortest period that a page shows


@dataclass(frozen=True)
class ReplayPage:
    rows: list[Replay]
    number: int
    num_pages: int


def replay_page(number: int = 1) -> ReplayPage:
    """Newest first; `number` is from 1, out of range it is brought into it."""
    rows = Replay.objects.select_related("source", "author")
    num_pages = max(1, -(-rows.count() // PAGE_SIZE))
    number = min(max(number, 1), num_pages)
    return ReplayPage(list(rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]), number, num_pages)


def chosen(ids: Sequence[int]) -> list[Replay]:
    """Those that have begun to be booked, in the order of `ids`."""
    found = Replay.objects.select_related("source").in_bulk(list(ids))
    return [found[pk] for pk in ids if pk in found and found[pk].counts]


def stretch(replay: Replay) -> tuple[int, int] | None:
    """Where it lies, in Unix seconds, as pages ask for it; None until that is known."""
    if replay.starts_at is None or replay.ends_at is None:
        return None
    ends_at = max(replay.ends_at, replay.starts_at + _LEAST_SECONDS)
    return replay.starts_at, min(ends_at, replay.starts_at + MAX_SECONDS)


def rates_over_time(replay: Replay, now: float) -> dict[str, Any]:
    """{"times", "rates"}: the middle of each step in hours from the replay's beginning, its hit rate or None."""
    lies = stretch(replay)
    if lies is None:
        return {"times": [], "rates": []}
    period: Period = between(*lies, now=now)
    series = hit_rate_series(period, engine=replay.name)
    middle = period.step_seconds / 2 - lies[0]
    return {"times": [(start + middle) / 3600 for start in series["starts"]], "rates": series["total"]}
