"""`/api/charts/<name>.json`, `/api/tiles.json`, `/api/tenants.json`: what pages draw, for the period in the address."""

import time
from collections.abc import Callable
from html import escape
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from dashboard import charts
from dashboard.charts import tiles
from dashboard.charts.changes import change_rows
from dashboard.charts.parts import Figure
from dashboard.charts.tenants import tenant_rows
from dashboard.selectors import latency, marks, residency, tenants, tier_series, tokens, totals
from dashboard.selectors.comparisons import before_and_after
from dashboard.selectors.period import Period, PeriodError, between, last
from dashboard.tenants import OTHER
from dashboard.views.answers import json_view
from dashboard.views.now import state_now
from dashboard.views.params import RANGES, BadParameterError, Query, read_query

Build = Callable[[Period, Query, float], Figure]


def _tokens(period: Period, query: Query, now: float) -> Figure:
    series = tokens.token_series(period, engine=query.engine, model_name=query.model_name)
    return charts.tokens_figure(series, period.step_seconds, now)


def _hit_rate(period: Period, query: Query, now: float) -> Figure:
    return charts.hit_rate_figure(
        tokens.hit_rate_series(period, engine=query.engine, model_name=query.model_name), period.step_seconds
    )


def _residency(period: Period, query: Query, now: float) -> Figure:
    series = residency.residency_series(period, engine=query.engine, model_name=query.model_name)
    return charts.residency_figure(series, period.step_seconds)


def _ttft(period: Period, query: Query, now: float) -> Figure:
    return charts.ttft_figure(
        latency.ttft_series(period, engine=query.engine, model_name=query.model_name), period.step_seconds
    )


def _bandwidth(period: Period, query: Query, now: float) -> Figure:
    series = tier_series.copied_bytes_series(period, engine=query.engine, model_name=query.model_name)
    return charts.bandwidth_figure(series, period.step_seconds, now)


def _load_times(period: Period, query: Query, now: float) -> Figure:
    series = tier_series.load_times_series(period, engine=query.engine, model_name=query.model_name)
    return charts.load_times_figure(series, period.starts, period.step_seconds)


def _failures(period: Period, query: Query, now: float) -> Figure:
    series = tier_series.failures_series(period, engine=query.engine, model_name=query.model_name)
    return charts.failures_figure(series, period.step_seconds, now)


def _skipped(period: Period, query: Query, now: float) -> Figure:
    series = tier_series.skipped_series(period, engine=query.engine, model_name=query.model_name)
    return charts.skipped_figure(series, period.step_seconds, now)


def _tenant_tokens(period: Period, query: Query, now: float) -> Figure:
    series = tenants.tenant_series(period, engine=query.engine, model_name=query.model_name)
    return charts.tenant_tokens_figure(series, now)


def _tenant_hit_rate(period: Period, query: Query, now: float) -> Figure:
    series = tenants.tenant_series(period, engine=query.engine, model_name=query.model_name)
    return charts.tenant_hit_rate_figure(series, now)


CHARTS: dict[str, Build] = {
    "tokens": _tokens,
    "hit-rate": _hit_rate,
    "residency": _residency,
    "ttft": _ttft,
    "bandwidth": _bandwidth,
    "load-times": _load_times,
    "failures": _failures,
    "skipped": _skipped,
    "tenant-tokens": _tenant_tokens,
    "tenant-hit-rate": _tenant_hit_rate,
}


@json_view()
def chart_json(request: HttpRequest, name: str) -> dict[str, Any]:
    """One chart's figure, with the marks of tier changes."""
    if name not in CHARTS:
        raise BadParameterError(f"There is no chart “{name[:40]}”; there are {', '.join(CHARTS)}.")
    now = time.time()
    query = read_query(request.GET, now)
    period = period_of(query, now)
    figure = CHARTS[name](period, query, now)
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
        **state_now(query.engine, now),
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
