"""`/api/advice.json`: which tier sizes are worth their price, for the traffic of the period in the address."""

import math
import time
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from dashboard.advising import TIMES, Front, front_of
from dashboard.charts.advice import advice_rows, in_words
from dashboard.charts.what_if import frontier_figure
from dashboard.charts.what_if_rows import prices_text
from dashboard.predicting import Predictor
from dashboard.views.answers import json_view
from dashboard.views.params import BadParameterError, Query, read_query
from dashboard.views.what_if_data import asked


@json_view()
def advice_json(request: HttpRequest) -> dict[str, Any]:
    """`budget` in dollars a month and `seconds` are limits, both optional; `time` is "mean" or "p95"."""
    now = time.time()
    params = request.GET.dict()
    budget, seconds = _limit(params, "budget"), _limit(params, "seconds")
    front = frontier(read_query(request.GET, now), params, now)
    if isinstance(front, str):
        return {"text": front, "choices": [], "figure": None}
    return {
        "text": f"{front.num_tried:,} sizes were tried, of tiers that have a price; the others stay as they are.",
        "choices": advice_rows(front, budget=budget, seconds=seconds),
        "figure": frontier_figure(
            [(choice.cost, choice.seconds, in_words(front, choice)) for choice in front.choices], front.marks
        ),
    }


def frontier(query: Query, params: Mapping[str, str], now: float) -> Front | str:
    """The frontier, or the sentence that says why there is none. Raises BadParameterError."""
    kind = params.get("time") or "mean"
    if kind not in TIMES:
        raise BadParameterError(f"time is “{kind[:40]}”, but it has to be mean or p95.")
    found = asked(query, now)
    return found.obstacle or _missing(found.predictor) or front_of(found.predictor, kind)


def _missing(predictor: Predictor) -> str:
    if not any(tier.tier in predictor.prices.gib_month for tier in predictor.tiers):
        return prices_text(predictor)
    if predictor.mean_ttft(predictor.as_measured_shares) is None:
        return "Times to first token, or what computing takes, were not measured in this period: there is no advice."
    return ""


def _limit(params: Mapping[str, str], name: str) -> float | None:
    text = params.get(name, "").strip()
    if not text:
        return None
    try:
        limit = float(text.removeprefix("$"))
    except ValueError:
        limit = math.nan
    if not (math.isfinite(limit) and limit >= 0):
        raise BadParameterError(f"{name} is “{text[:40]}”, but it has to be a number of 0 or more.")
    return limit
