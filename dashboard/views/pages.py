"""The pages themselves: what a template needs before its script runs."""

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static

from dashboard.selectors import present
from dashboard.selectors.engines import fleet
from dashboard.selectors.requests import oldest_request_at
from dashboard.selectors.tenants import all_tenants
from dashboard.views.params import (
    DEFAULT_RANGE,
    NEWCOMERS_RANGE,
    RANGE_WORDS,
    RANGES,
    BadParameterError,
    Query,
    read_query,
)
from dashboard.views.track_record import track_record

# What each main.js imports: named in the page, so that a browser asks for all of it at once, not one after the other.
FILTERED = [
    *(f"js/lib/{name}.js" for name in ("api", "dom", "downloads", "firing", "hints", "plotly", "time")),
    *(f"js/overview/{name}.js" for name in ("charts", "filters", "link", "live", "query", "state", "table")),
]
STARTED = [*FILTERED, "js/overview/start.js"]
CHARTED = [*STARTED, "js/lib/addresses.js", "js/overview/tiles.js"]
_OVERVIEW = [*CHARTED, "js/overview/tenants.js"]
_TIERS = [*CHARTED, *(f"js/tiers/{name}.js" for name in ("cards", "flows"))]
_WHAT_IF = [
    *FILTERED,
    *(f"js/what-if/{name}.js" for name in ("advice", "figures", "policies", "sizes", "tenants", "words")),
]

_MODEL = "SmolLM2-135M-Instruct"  # what is loaded where nobody chose another, for the example while it loads


def overview(request: HttpRequest) -> HttpResponse:
    return charts_page(request, "overview.html", _OVERVIEW, tenants=all_tenants())


def tiers(request: HttpRequest) -> HttpResponse:
    """Whether each tier pays for itself."""
    return charts_page(request, "tiers.html", _TIERS)


def what_if(request: HttpRequest) -> HttpResponse:
    """What other tier sizes would do, and what came of earlier predictions."""
    return charts_page(request, "what_if.html", _WHAT_IF, record=track_record(time.time()))


def charts_page(request: HttpRequest, template: str, modules: list[str], **more: Any) -> HttpResponse:
    """Charts of a period. A wrong address shows the default period and says what was wrong."""
    now = time.time()
    default_range = _default_range(now)
    query, problem = _query_or_default(request, default_range, now)
    context = (
        present.engines_and_models()
        | more
        | {
            "ranges": RANGE_WORDS,
            "default_range": default_range,
            "query": query,
            "problem": problem,
            "modules": modules,
            "api_key_file": _api_key_file(),
            "example_model": next((live.model_name for live in fleet().engines.values() if live.model_name), _MODEL),
            "base_url": request.build_absolute_uri("/v1").rstrip("/"),
        }
    )
    return render(request, template, context)


def chat(request: HttpRequest) -> HttpResponse:
    """A conversation with a model; its script talks to `/v1/chat/completions` with this session."""
    return render(request, "chat.html")


@login_not_required
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers ask for it on pages that name no icon, such as the admin's."""
    return redirect(static("img/tierscope.svg"))


def _api_key_file() -> str:
    """As somebody in the checkout's folder would write it."""
    path = Path(settings.TIERSCOPE_HOME) / "api-key"
    return str(path.relative_to(settings.BASE_DIR) if path.is_relative_to(settings.BASE_DIR) else path)


def _default_range(now: float) -> str:
    """A newcomer's first minute of traffic fills a fifth of five minutes, but a fifteenth of fifteen."""
    oldest = oldest_request_at()
    return DEFAULT_RANGE if oldest and now - oldest > RANGES[NEWCOMERS_RANGE] else NEWCOMERS_RANGE


def _query_or_default(request: HttpRequest, default_range: str, now: float) -> tuple[Query, str]:
    default = {"range": default_range}
    try:
        return read_query(default | request.GET.dict(), now), ""
    except BadParameterError as error:
        return read_query(default, now), str(error)
