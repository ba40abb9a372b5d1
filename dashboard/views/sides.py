"""What the address of a comparison asks for: two engines in one period, or one, or all, in two.

The left side is what every page's address means. `other` is the engine on the right, without it the same one; `against`
is when the right side lies: "same", "before", "day" and "week" earlier, or "at" the moment in `at`.
"""

from collections.abc import Mapping

from dashboard.models import Series
from dashboard.selectors.period import PeriodError, twins
from dashboard.selectors.sides import Side
from dashboard.views.params import BadParameterError, Query, read_moment, read_name

SHIFTS = {"same": 0, "before": None, "day": 86_400, "week": 7 * 86_400}
AGAINST = {
    "same": "the same period",
    "before": "the period right before",
    "day": "a day earlier",
    "week": "a week earlier",
    "at": "from this moment on",
}
NAMES = ("other", "against", "at")


def read_sides(query: Query, params: Mapping[str, str], now: float) -> tuple[Side, Side]:
    """Raises BadParameterError."""
    other = read_name(params, "other") or query.engine
    for engine in {query.engine, other} - {None}:
        if not Series.objects.filter(engine=engine).exists():
            raise BadParameterError(f"There is no engine “{engine}”.")
    shift = _shift(query, params, is_same=other == query.engine)
    try:
        left, right = twins(query.start, query.end, shift, now=now)
    except PeriodError as error:
        raise BadParameterError(str(error)) from None
    if other == query.engine and abs(left.start - right.start) < left.end - left.start:
        raise BadParameterError(_overlap(left.start == right.start))
    if right.start >= now:
        raise BadParameterError("The right side lies in the future, where nothing has been counted yet.")
    return Side(left, query.engine, query.model_name), Side(right, other, query.model_name)


def _shift(query: Query, params: Mapping[str, str], *, is_same: bool) -> int | None:
    """Seconds by which the right side lies earlier; None for the period right before."""
    against = params.get("against") or ("at" if params.get("at") else "before" if is_same else "same")
    if against == "at":
        return query.start - read_moment("at", params.get("at") or "")
    if against not in SHIFTS:
        raise BadParameterError(f"against is “{against[:40]}”, but it has to be one of {', '.join(AGAINST)}.")
    return SHIFTS[against]


def _overlap(is_same: bool) -> str:
    if is_same:
        return "Both sides are the same: choose another engine or another period on the right."
    return "The two periods overlap, so that they would share tokens: choose one further away."
