"""`/api/advice.json`: which tier sizes are worth their price, for the traffic of the period in the address."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from dashboard.admin.request_user import user_of
from dashboard.advising import TIMES, Front, front_of, sizes_to_try
from dashboard.charts.advice import advice_rows, in_words
from dashboard.charts.policies import policies_text, policy_rows
from dashboard.charts.what_if import frontier_figure
from dashboard.charts.what_if_rows import prices_text
from dashboard.models import TierSetting
from dashboard.predicting import Predictor
from dashboard.selectors.policy_search import as_told, findings, newest, trace_of
from dashboard.services.policy_search import UNFINISHED, create
from dashboard.views.answers import json_view
from dashboard.views.params import BadParameterError, Query, read_query
from dashboard.views.what_if_data import asked
from dashboard.what_if import Asked


@json_view()
def advice_json(request: HttpRequest) -> dict[str, Any]:
    """`budget` in dollars a month and `seconds` are limits, both optional; `time` is "mean" or "p95"."""
    now = time.time()
    params = request.GET.dict()
    budget, seconds = _limit(params, "budget"), _limit(params, "seconds")
    query = read_query(request.GET, now)
    found, front = _asked_of_all(query, params, now)
    policies = _policies(found, is_staff=user_of(request).is_staff)
    if isinstance(front, str):
        return {"text": front, "choices": [], "figure": None, "policies": policies}
    return {
        "text": _tried(front) + (" It is for the prompts of all tenants." if query.tenant else ""),
        "choices": advice_rows(front, budget=budget, seconds=seconds),
        "figure": frontier_figure(
            [(choice.cost, choice.seconds, in_words(front, choice)) for choice in front.choices], front.marks
        ),
        "policies": policies,
    }


def _tried(front: Front) -> str:
    setups = f", {front.num_setups:,} of them with other policies or write modes" if front.num_setups else ""
    return f"{front.num_tried:,} sizes were tried{setups}, of tiers that have a price; the others stay as they are."


def _policies(found: Asked, *, is_staff: bool) -> dict[str, Any]:
    """How far trying policies and write modes is, and what was found at today's sizes."""
    if found.obstacle:
        return {"text": "", "rows": [], "is_running": False, "can_start": False}
    search, trace = newest(found.engine), trace_of(found.engine)
    known = findings(found.engine, found.predictor.tiers)
    is_running = search is not None and search.state in UNFINISHED
    is_ours = TierSetting.objects.filter(engine=found.engine).exists()
    return {
        "text": policies_text(search, trace, is_ours=is_ours, is_current=bool(known)),
        "rows": policy_rows(found.predictor, known),
        "is_running": is_running,
        "can_start": is_staff and trace is not None and not is_running,
    }


@json_view("POST", staff=True)
def policies_start(request: HttpRequest) -> dict[str, Any]:
    """Has policies and write modes tried for the engine and period in the address, at some sizes along the frontier."""
    now, params = time.time(), request.GET.dict()
    found, front = _asked_of_all(read_query(request.GET, now), params, now)
    trace = trace_of(found.engine)
    if found.obstacle or trace is None:
        raise BadParameterError(found.obstacle or f"There is no trace of the traffic of {found.engine}.")
    predictor = found.predictor
    create(
        engine=found.engine,
        file_name=trace.file_name,
        form=trace.form,
        tiers=[as_told(tier) for tier in predictor.tiers],
        sizes=sizes_to_try(predictor, None if isinstance(front, str) else front),
        seconds=_seconds(predictor),
        author=user_of(request),
        now=timezone.now(),
    )
    return {}


def _seconds(predictor: Predictor) -> dict[str, float]:
    """What a token takes, by tier and computed; {} where that was not measured."""
    if predictor.prefill_seconds is None:
        return {}
    loads = {tier.tier: predictor.load_seconds(tier.tier) for tier in predictor.tiers}
    return {"computed": predictor.prefill_seconds, **loads}


def frontier(query: Query, params: Mapping[str, str], now: float) -> Front | str:
    """The frontier, or the sentence that says why there is none. Raises BadParameterError."""
    return _asked_of_all(query, params, now)[1]


def _asked_of_all(query: Query, params: Mapping[str, str], now: float) -> tuple[Asked, Front | str]:
    """Of the prompts of all tenants, since tiers are everybody's."""
    kind = params.get("time") or "mean"
    if kind not in TIMES:
        raise BadParameterError(f"time is “{kind[:40]}”, but it has to be mean or p95.")
    found = asked(replace(query, tenant=None), now)
    why = found.obstacle or _missing(found.predictor)
    known = [] if why else findings(found.engine, found.predictor.tiers)
    return found, why or front_of(found.predictor, kind, known)


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
