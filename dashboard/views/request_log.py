"""The request log as a page: who asked, where the prompt's tokens came from, how long it took."""

import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.charts.palette import COMPUTED, legend
from dashboard.charts.words import ago, duration
from dashboard.models import CacheTier, RequestLog
from dashboard.selectors.present import engines_and_models
from dashboard.selectors.requests import request_page
from dashboard.selectors.tenants import all_tenants
from dashboard.tenants import shown
from dashboard.views.params import page_number

_TIERS = (CacheTier.GPU, CacheTier.CPU, CacheTier.DISK, CacheTier.REMOTE)
_LONGEST_NAME = 200


def requests(request: HttpRequest) -> HttpResponse:
    """One page of the log, newest first; the filters are in the address. A page number that is none means the first."""
    filters = {name: request.GET.get(name, "")[:_LONGEST_NAME] for name in ("engine", "model", "tier", "tenant")}
    asked = page_number(request.GET)
    page = request_page(
        asked,
        engine=filters["engine"] or None,
        model_name=filters["model"] or None,
        slowest_tier=filters["tier"] or None,
        tenant=filters["tenant"] or None,
    )
    now = time.time()
    context = engines_and_models() | {
        "filters": filters,
        "is_filtered": any(filters.values()),
        "tenants": all_tenants(),
        "tiers": [*_TIERS, "none"],
        "rows": [_row(logged, now) for logged in page.rows],
        "page": page.number,
        "missing_page": asked if page.number != asked and page.rows else None,
        "newer": _address(request, page.number - 1) if page.number > 1 else "",
        "older": _address(request, page.number + 1) if page.has_next else "",
        "legend": legend((*_TIERS, COMPUTED)),
    }
    return render(request, "requests.html", context)


def _address(request: HttpRequest, number: int) -> str:
    query = request.GET.copy()
    query["page"] = str(number)
    return f"?{query.urlencode()}"


def _row(logged: RequestLog, now: float) -> dict[str, Any]:
    parts = _parts(logged)
    return {
        "logged": logged,
        "tenant": shown(logged.tenant),
        "ago": ago(now - logged.finished_at.timestamp()),
        "parts": [part for part in parts if part["tokens"]],
        "words": ", ".join(f"{part['tokens']:,} {part['origin']}" for part in parts if part["tokens"]),
        "ttft": duration(logged.ttft_seconds),
        "hit_rate": 100 * (1 - logged.computed_tokens / logged.prompt_tokens) if logged.prompt_tokens else None,
    }


def _parts(logged: RequestLog) -> list[dict[str, Any]]:
    """The prompt's tokens by origin, fastest tier first, with each one's share in percent."""
    counted = [(str(tier), getattr(logged, f"hit_{tier}_tokens")) for tier in _TIERS]
    counted.append((COMPUTED, logged.computed_tokens))
    total = max(logged.prompt_tokens, 1)
    return [
        {"origin": origin, "tokens": tokens, "percent": f"{100 * tokens / total:.2f}"} for origin, tokens in counted
    ]
