"""`/api/charts/<name>.json`, `/api/tiles.json`, `/api/tenants.json`: what pages draw, for the period in the address."""

import time
from html import escape
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from dashboard import charts
from dashboard.charts import tiles
from dashboard.charts.changes import change_rows
from dashboard.charts.tenants import tenant_rows
from dashboard.selectors import marks, tenants, totals
from dashboard.selectors.comparisons import before_and_after
from dashboard.selectors.period import Period, PeriodError, between, last
from dashboard.tenants import OTHER
from dashboard.views.answers import json_view
from dashboard.views.now import state_now
from dashboard.views.params import RANGES, BadParameterError, Query, read_query
from dashboard.views.time_charts import TIME_CHARTS


@json_view()
def chart_json(request: HttpRequest, name: str) -> dict[str, Any]:
    """One chart's figure, with the marks of tier changes."""
    if name not in TIME_CHARTS:
        raise BadParameterError(f"There is no chart “{name[:40]}”; there are {', '.join(TIME_CHARTS)}.")
    now = time.time()
    query = read_query(request.GET, now)
    period = period_of(query, now)
    figure = TIME_CHARTS[name].figure(period, query, now)
    return {"figure": charts.with_marks(figure, _marks(period, query)), "step_seconds": period.step_seconds}


@json_view()
def tenants_json(request: HttpRequest) -> dict[str, Any]:
    """Each tenant's tokens of the period by the tier they came from."""
    now = time.time()
    query = read_query(request.GET, now)
    found = tenants.tenant_totals(period_of(query, now), engine=query.engine, model_name=query.model_name)
    return {"rows": [row | {"requests": _requests_of(row["tenant"])} for row in tenant_rows(found)]}


def _requests_of(tenant: str) -> str:
    """The address of the tenant's requests; "" for `other`, of whom the log has each by its own name."""
    return "" if tenant == OTHER else f"{reverse('requests')}?{urlencode({'tenant': tenant})}"


@json_view()
def tiles_json(request: HttpRequest) -> dict[str, Any]:
    """Totals of the period, and how engines and sources stand at this moment."""
    now = time.time()
    query = read_query(request.GET, now)
    return {**tiles_of(query, now), **state_now(query.engine, now)}


def tiles_of(query: Query, now: float) -> dict[str, Any]:
    """What the period came to, as tiles, as parts, and beside each change of a tier. Raises BadParameterError."""
    period = period_of(query, now)
    counted = totals.totals(period, engine=query.engine, model_name=query.model_name)
    return {
        "tiles": tiles.tiles(counted, query.end - query.start),
        "comparison_note": tiles.comparison_note(counted, query.end - query.start),
        "origins": tiles.origins(counted),
        "prompt_tokens": counted["prompt_tokens"],
        "changes": change_rows(
            before_and_after(period, now=now, engine=query.engine, model_name=query.model_name),
        ),
    }


def period_of(query: Query, now: float) -> Period:
    """The stored steps that fit the query best. Raises BadParameterError."""
    try:
        if query.range_name:
            return last(RANGES[query.range_name], now=now)
        return between(query.start, query.end, now=now)
    except PeriodError as error:
        raise BadParameterError(str(error)) from None


def _marks(period: Period, query: Query) -> list[dict[str, Any]]:
    """Plotly reads a little HTML in hover texts, so that names are escaped."""
    changes = marks.size_changes(period, engine=query.engine)
    return [{"at": change["at"], "text": escape(change["text"], quote=False)} for change in changes]
