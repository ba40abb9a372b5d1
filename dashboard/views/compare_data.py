"""`/api/compare.json`: two sides in numbers, with their differences, and charts on the same axes."""

import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from dashboard.charts.compared import figures, note, rows
from dashboard.charts.parts import Figure
from dashboard.charts.replays import compared_figure
from dashboard.selectors.sides import Seen, Side, seen
from dashboard.views.answers import json_view
from dashboard.views.now import state_now
from dashboard.views.params import read_query
from dashboard.views.sides import read_sides
from dashboard.zone import in_words

_ALL = "all engines"
_SHORT_SECONDS = 2 * 3600


@json_view()
def compare_json(request: HttpRequest) -> dict[str, Any]:
    """The left side is that of the usual parameters, the right one that of `other`, `against` and `at`."""
    now = time.time()
    query = read_query(request.GET, now)
    left, right = read_sides(query, request.GET.dict(), now)
    pair = seen(left), seen(right)
    names = _names(left, right)
    return {
        "names": names,
        "periods": [_period(left), _period(right)],
        "queries": [_query(left), _query(right)],
        "rows": rows(pair),
        "note": note(pair),
        "figures": figures(pair, now),
        "overlay": _overlay(names, pair),
        "prompt_tokens": sum(side.totals["prompt_tokens"] for side in pair),
        **state_now(query.engine, now),
    }


def _names(left: Side, right: Side) -> list[str]:
    """Their engines, with the time where that is all that tells them apart."""
    if left.engine != right.engine:
        return [side.engine or _ALL for side in (left, right)]
    engine = left.engine or _ALL
    return [f"{engine}, {_moment(side.period.start)}" for side in (left, right)]


def _period(side: Side) -> str:
    return f"{_moment(side.period.start)} to {_moment(side.period.end)}"


def _moment(at: int) -> str:
    return in_words(datetime.fromtimestamp(at, UTC))


def _query(side: Side) -> dict[str, str | int]:
    """What asks other pages and files for just this side."""
    filters = {"engine": side.engine, "model": side.model_name}
    chosen = {name: value for name, value in filters.items() if value}
    return {"start": side.period.start, "end": side.period.end, **chosen}


def _overlay(names: list[str], pair: tuple[Seen, Seen]) -> Figure:
    period = pair[0].side.period
    is_short = period.end - period.start <= _SHORT_SECONDS
    unit, name = (60, "minutes") if is_short else (3600, "hours")
    return compared_figure(names, [_over_time(side, unit) for side in pair], f"{name} into the period")


def _over_time(side: Seen, unit: int) -> dict[str, Any]:
    """{"times", "rates"}: the middle of each step from the period's beginning, in so many seconds, and its hit rate."""
    period = side.side.period
    middles = [start + period.step_seconds / 2 - period.start for start in period.starts]
    return {"times": [seconds / unit for seconds in middles], "rates": side.rates["total"]}
