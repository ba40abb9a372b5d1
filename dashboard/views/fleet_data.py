"""`/api/fleet.json` and `/api/models.json`: the tokens of the period in the address, by engine and by model."""

import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from dashboard.charts.fleet_rows import fleet_rows
from dashboard.charts.model_rows import model_rows
from dashboard.selectors import engines as live
from dashboard.selectors.engine_list import EngineRow, engine_rows
from dashboard.selectors.fleet import EngineTokens, Place, engine_tokens
from dashboard.selectors.model_tokens import by_model
from dashboard.views.answers import json_view
from dashboard.views.chart_data import period_of
from dashboard.views.now import state_of_page
from dashboard.views.params import Query, read_query


@json_view()
def fleet_json(request: HttpRequest) -> dict[str, Any]:
    """The filters keep one engine, one model."""
    now = time.time()
    query = read_query(request.GET, now)
    alive = live.fleet()
    return _answer(fleet_rows(*asked_engines(query, alive, now)), query, alive, now)


@json_view()
def models_json(request: HttpRequest) -> dict[str, Any]:
    """The filters keep one engine, one model."""
    now = time.time()
    query = read_query(request.GET, now)
    alive = live.fleet()
    engines, tokens = asked_engines(query, alive, now)
    return _answer(model_rows(engines, by_model(tokens)), query, alive, now)


def asked_engines(query: Query, alive: live.Fleet, now: float) -> tuple[list[EngineRow], dict[Place, EngineTokens]]:
    """Those that the filters keep, and their tokens of the period. Raises BadParameterError."""
    kept = [
        row
        for row in engine_rows(alive, datetime.fromtimestamp(now, UTC))
        if query.engine in (None, row.engine) and query.model_name in (None, row.model_name)
    ]
    places = {(row.engine, row.model_name) for row in kept}
    tokens = engine_tokens(period_of(query, now))
    return kept, {place: told for place, told in tokens.items() if place in places}


def _answer(rows: list[dict[str, Any]], query: Query, alive: live.Fleet, now: float) -> dict[str, Any]:
    return {
        "rows": rows,
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
        **state_of_page(alive, query.engine, now),
    }
