"""`/api/tiers.json`: whether each tier pays, and what moved between them, for the period in the address."""

import time
from typing import Any

from django.http import HttpRequest

from dashboard.charts.flows import flow_rows, flows_figure
from dashboard.charts.tier_cards import prefill_text, tier_cards
from dashboard.selectors.flows import flows_of
from dashboard.selectors.tier_costs import Costs, tier_costs
from dashboard.views.answers import json_view
from dashboard.views.chart_data import period_of
from dashboard.views.now import state_now
from dashboard.views.params import read_query


@json_view()
def tiers_json(request: HttpRequest) -> dict[str, Any]:
    """The cards of all tiers, the flows as a figure and as rows, and how engines and sources stand at this moment."""
    now = time.time()
    query = read_query(request.GET, now)
    costs = tier_costs(period_of(query, now), engine=query.engine, model_name=query.model_name)
    return {
        "cards": tier_cards(costs),
        "prefill_text": prefill_text(costs),
        "flows": _flows(costs),
        "prompt_tokens": costs.prompt_tokens,
        **state_now(query.engine, now),
    }


def _flows(costs: Costs) -> dict[str, Any]:
    moved = flows_of(costs)
    nothing = "No engine tells what moves between its tiers." if moved is None else "Nothing moved in this period."
    return {
        "figure": flows_figure(moved or []),
        "rows": flow_rows(moved or []),
        "text": "" if moved else nothing,
    }
