"""What a change of a tier did: the same length of time before and after it, side by side. Reads only."""

from dataclasses import dataclass
from typing import Any

from dashboard.selectors.marks import size_changes
from dashboard.selectors.period import Period, between
from dashboard.selectors.totals import totals

MAX_CHANGES = 5  # the newest; each costs one query
_LONGEST_SECONDS = 1_800
_SHORTEST_SECONDS = 60
_STEP = 10


@dataclass(frozen=True)
class Comparison:
    """`seconds` on each side; None, with `before` and `after`, where the change is too near to now or to another."""

    at: float
    text: str
    seconds: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def before_and_after(
    period: Period, *, now: float, engine: str | None = None, model_name: str | None = None
) -> list[Comparison]:
    """The newest changes in `period`, newest first.

    Neither side reaches over another change of the period: what it shows belongs to one change. Changes less than a
    minute apart cannot be told from each other. The 10 s in which the change was made belong to "before".
    """
    changes = size_changes(period, engine=engine)
    starts = [-(-int(change["at"]) // _STEP) * _STEP for change in changes]
    edges = [0, *starts, int(now) // _STEP * _STEP]
    compared = [
        _compare(change, _window(*edges[index : index + 3]), starts[index], now, engine, model_name)
        for index, change in enumerate(changes)
        if index >= len(changes) - MAX_CHANGES
    ]
    return compared[::-1]


def _window(earlier: int, start: int, later: int) -> int | None:
    seconds = min(_LONGEST_SECONDS, start - earlier, later - start)
    return seconds if seconds >= _SHORTEST_SECONDS else None


def _compare(
    change: dict[str, Any], seconds: int | None, start: int, now: float, engine: str | None, model_name: str | None
) -> Comparison:
    if seconds is None:
        return Comparison(change["at"], change["text"], None, None, None)
    after = totals(between(start, start + seconds, now=now), engine=engine, model_name=model_name)
    return Comparison(change["at"], change["text"], seconds, after.pop("previous"), after)
