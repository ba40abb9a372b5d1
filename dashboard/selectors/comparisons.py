"""What a change of a tier did: the same length of time before and after it, side by side. Reads only.

Stretches are compared with each other only where they were looked at about equally often.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dashboard.selectors.marks import size_changes
from dashboard.selectors.period import Period, between
from dashboard.selectors.totals import totals

MAX_CHANGES = 5  # the newest; each costs one query
_LONGEST_SECONDS = 1_800
_SHORTEST_SECONDS = 60
_STEP = 10

# An edge that is still filling is no matter.
_LEAST_SHARE_OF_LOOKS = 0.85


def share_of_looks(one: float, other: float) -> float:
    """The smaller of two amounts of observation as a share of the larger, 1 where there is none at all."""
    least, most = sorted((one, other))
    return least / most if most else 1.0


def are_alike(one: float, other: float) -> bool:
    """Whether what was observed so much of can be compared."""
    return share_of_looks(one, other) >= _LEAST_SHARE_OF_LOOKS


class Obstacle(StrEnum):
    """Why a change has no side of a minute."""

    TOO_NEW = "too new"
    ANOTHER_BEFORE = "another before"
    ANOTHER_AFTER = "another after"
    OTHERS_AROUND = "others around"


@dataclass(frozen=True)
class Comparison:
    """`seconds` on each side, or the obstacle. A side is None where it was not observed."""

    at: float
    text: str
    seconds: int | None = None
    obstacle: Obstacle | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


def before_and_after(
    period: Period, *, now: float, engine: str | None = None, model_name: str | None = None
) -> list[Comparison]:
    """The newest changes in `period`, newest first.

    Neither side reaches over another change, also one outside the period: what it shows belongs to one change. Changes
    less than a minute apart cannot be told from each other. The 10 s in which the change was made belong to "before".
    """
    changes = size_changes(_wider(period, now), engine=engine)
    starts = [-(-int(change["at"]) // _STEP) * _STEP for change in changes]
    edges = [0, *starts, int(now) // _STEP * _STEP]
    shown = [index for index, change in enumerate(changes) if period.start <= change["at"] < period.end]
    return [
        _compare(changes[index], edges[index : index + 3], index + 1 == len(changes), now, engine, model_name)
        for index in reversed(shown[-MAX_CHANGES:])
    ]


def _wider(period: Period, now: float) -> Period:
    """With the longest side that could be compared before and after it."""
    end = max(period.end, min(period.end + _LONGEST_SECONDS, -(-int(now) // _STEP) * _STEP))
    return Period(max(0, period.start - _LONGEST_SECONDS), end, _STEP)


def _compare(
    change: dict[str, Any], edges: list[int], is_newest: bool, now: float, engine: str | None, model_name: str | None
) -> Comparison:
    earlier, start, later = edges
    if obstacle := _obstacle(start - earlier, later - start, is_newest):
        return Comparison(change["at"], change["text"], obstacle=obstacle)
    seconds = min(_LONGEST_SECONDS, start - earlier, later - start)
    after = totals(between(start, start + seconds, now=now), engine=engine, model_name=model_name)
    before = after.pop("previous")
    return Comparison(
        change["at"], change["text"], seconds, before=before, after=after if after["is_observed"] else None
    )


def _obstacle(seconds_before: int, seconds_after: int, is_newest: bool) -> Obstacle | None:
    """Time passes and makes the newest comparable, unless another change came right before it."""
    is_close, is_followed = seconds_before < _SHORTEST_SECONDS, seconds_after < _SHORTEST_SECONDS
    if is_followed and not is_newest:
        return Obstacle.OTHERS_AROUND if is_close else Obstacle.ANOTHER_AFTER
    if is_close:
        return Obstacle.ANOTHER_BEFORE
    return Obstacle.TOO_NEW if is_followed else None
