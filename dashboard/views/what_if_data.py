"""`/api/what-if.json`: what an engine would do with the tier sizes in the address."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest

from dashboard.charts import what_if_words
from dashboard.charts.palette import LOOKS
from dashboard.charts.what_if import curve_figure, split_figure
from dashboard.charts.what_if_rows import outcome_rows, prices_text
from dashboard.predicting import Outcome, Predictor
from dashboard.selectors.engines import fleet
from dashboard.selectors.marks import size_changes
from dashboard.selectors.tier_sizes import TierSize
from dashboard.sizes import exact_size, format_size, parse_size
from dashboard.views.answers import json_view
from dashboard.views.chart_data import period_of
from dashboard.views.now import state_now
from dashboard.views.params import BadParameterError, Query, read_query
from dashboard.what_if import Asked, Question, apply_url, ask, default_engine


def asked(query: Query, now: float, *, is_move: bool = False) -> Asked:
    """Raises BadParameterError where the period cannot be shown."""
    alive = fleet()
    question = Question(
        period_of(query, now),
        engine=query.engine or default_engine(alive),
        model_name=query.model_name,
        tenant=query.tenant,
        shown_as=query.range_name or f"{query.start}-{query.end}",
    )
    return ask(question, alive=alive, now=now, is_move=is_move)


def read_sizes(params: Mapping[str, str], tiers: Sequence[TierSize]) -> dict[str, int]:
    """The sizes in the address, today's where it has none. Raises BadParameterError."""
    sizes = {}
    for tier in tiers:
        text = params.get(tier.tier, "")
        try:
            sizes[tier.tier] = parse_size(text) if text else tier.num_bytes
        except ValueError as error:
            raise BadParameterError(f"{LOOKS[tier.tier].label}: {error}") from None
    return sizes


@json_view()
def what_if_json(request: HttpRequest) -> dict[str, Any]:
    """The curve, the split at the asked sizes beside the measured one, and everything that is said about them.

    `move=1` is a slider's: what was measured is then what the page showed last.
    """
    now = time.time()
    query = read_query(request.GET, now)
    found = asked(query, now, is_move=request.GET.get("move") == "1")
    predictor = found.predictor
    sizes = read_sizes(request.GET.dict(), predictor.tiers)
    check_known(predictor, sizes)
    told = {} if found.obstacle else _prediction(found, sizes)
    return {
        "engine": found.engine,
        "tenant": found.tenant,
        "tenants": found.tenants,
        "obstacle": found.obstacle,
        "prompt_tokens": predictor.measured.costs.prompt_tokens,
        **told,
        **state_now(query.engine, now),
    }


def check_known(predictor: Predictor, sizes: Mapping[str, int]) -> None:
    """Raises BadParameterError for a size of which an estimate knows nothing."""
    largest = predictor.measured.curve.known_up_to
    for tier in predictor.tiers if largest is not None else ():
        if sizes[tier.tier] > tier.num_bytes:
            today = format_size(tier.num_bytes)
            raise BadParameterError(
                f"{LOOKS[tier.tier].label}: what more than today's {today} would serve, nothing tells."
            )


def _prediction(found: Asked, sizes: dict[str, int]) -> dict[str, Any]:
    predictor = found.predictor
    outcome, at_today = predictor.predict(sizes), predictor.predict(predictor.today)
    points = predictor.points
    band = what_if_words.margins(predictor.measured.curve, points)
    measured = predictor.as_measured
    return {
        "curve": [[capacity, round(rate, 5)] for capacity, rate in points],
        "measured": _numbers(measured),
        "predicted": _numbers(outcome),
        "predicted_today": _numbers(at_today),
        "tiers": [_tier(tier, predictor, sizes, outcome) for tier in predictor.tiers],
        "figures": {
            "curve": curve_figure(
                points,
                predictor.tiers[0].bytes_a_token,
                _ends(predictor, predictor.today),
                _ends(predictor, sizes),
                band,
            ),
            "split": split_figure({"measured": measured.hit, "predicted": outcome.hit}),
        },
        "rows": outcome_rows(measured, at_today, outcome, is_today=sizes == predictor.today),
        "notes": what_if_words.notes(predictor, sizes) + what_if_words.tenant_notes(found.tenant) + _changes(found),
        "prices_text": "" if found.tenant else prices_text(predictor),
        "is_today": sizes == predictor.today,
        "apply_url": apply_url(found, sizes),
    }


def _ends(predictor: Predictor, sizes: dict[str, int]) -> dict[str, int]:
    """How deep each tier reaches that has a part of the stack."""
    stretches = zip(predictor.tiers, predictor.stretches(sizes), strict=True)
    return {tier.tier: end for tier, (start, end) in stretches if start < end}


def _numbers(outcome: Outcome) -> dict[str, Any]:
    return {
        "hit": {tier: round(share, 5) for tier, share in outcome.hit.items()},
        "hit_rate": round(outcome.hit_rate, 5),
        "computed": round(outcome.computed, 5),
        "ttft_seconds": outcome.ttft_seconds,
        "ttft_p95_seconds": outcome.ttft_p95_seconds,
        "prefill_seconds_saved": outcome.saved_seconds,
        "dollars_a_month": outcome.bill,
        "dollars_a_million_prompt_tokens": outcome.million_dollars,
    }


def _tier(tier: TierSize, predictor: Predictor, sizes: dict[str, int], outcome: Outcome) -> dict[str, Any]:
    num_bytes = sizes[tier.tier]
    least, most = predictor.range_of(tier)
    return {
        "tier": tier.tier,
        "label": LOOKS[tier.tier].label,
        "bytes": num_bytes,
        "size": exact_size(num_bytes),
        "tokens_text": what_if_words.size_text(tier, num_bytes),
        "today_bytes": tier.num_bytes,
        "today_size": format_size(tier.num_bytes),
        "least_bytes": least,
        "most_bytes": most,
        "limit_text": what_if_words.limit_text(tier, num_bytes),
        "next_gib": what_if_words.next_gib(tier, predictor, sizes, outcome),
    }


def _changes(found: Asked) -> list[dict[str, str]]:
    resized = [mark for mark in size_changes(found.period, engine=found.engine) if mark["action"] != "clear"]
    text = "Tiers were changed in this period: the measured split is that of several sizes."
    return [{"kind": "measured", "text": text}] if resized else []
