"""The pages themselves: what a template needs before its script runs."""

import time
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static

from dashboard.selectors import present
from dashboard.views.params import DEFAULT_RANGE, RANGE_WORDS, BadParameterError, Query, read_query

# What main.js imports: named in the page, so that a browser asks for all of it at once instead of one after the other.
_MODULES = [
    *(f"js/lib/{name}.js" for name in ("api", "dom", "hints")),
    *(f"js/overview/{name}.js" for name in ("charts", "filters", "live", "query", "state", "table", "tiles")),
]


def overview(request: HttpRequest) -> HttpResponse:
    """The charts. A wrong address shows the default period and says what was wrong."""
    query, problem = _query_or_default(request)
    context = present.engines_and_models() | {
        "ranges": RANGE_WORDS,
        "query": query,
        "problem": problem,
        "modules": _MODULES,
        "base_url": request.build_absolute_uri("/v1").rstrip("/"),
    }
    return render(request, "overview.html", context)


def chat(request: HttpRequest) -> HttpResponse:
    """A conversation with a model; its script talks to `/v1/chat/completions` with this session."""
    return render(request, "chat.html")


@login_not_required
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers ask for it on pages that name no icon, such as the admin's."""
    return redirect(static("img/tierscope.svg"))


def _query_or_default(request: HttpRequest) -> tuple[Query, str]:
    now = time.time()
    try:
        return read_query(request.GET, now), ""
    except BadParameterError as error:
        default: dict[str, Any] = {"range": DEFAULT_RANGE}
        return read_query(default, now), str(error)
