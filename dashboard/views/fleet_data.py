"""`/api/fleet.json`: every engine's tokens of the period in the address, worst first."""

import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from dashboard.charts.fleet_rows import fleet_rows
from dashboard.selectors import engines as live
from dashboard.selectors.engine_list import engine_rows
from dashboard.selectors.fleet import engine_tokens
from dashboard.views.answers import json_view
from dashboard.views.chart_data import period_of
from dashboard.views.now import state_of_page
from dashboard.views.params import read_query


@json_view()
def fleet_json(request: HttpRequest) -> dict[str, Any]:
    """The filters keep one engine, one model."""
    now = time.time()
    query = read_query(request.GET, now)
    alive = live.fleet()
    engines = [
        row
        for row in engine_rows(alive, datetime.fromtimestamp(now, UTC))
        if query.engine in (None, row.engine) and query.model_name in (None, row.model_name)
    ]
    rows = fleet_rows(engines, engine_tokens(period_of(query, now)))
    return {
        "rows": rows,
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
        **state_of_page(alive, query.engine, now),
    }
