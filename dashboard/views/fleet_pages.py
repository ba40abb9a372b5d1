"""The pages of many engines, of one, and of two side by side: what a template needs before its script runs."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from dashboard.charts.palette import COMPUTED, TIER_ORDER, UNTOLD, legend
from dashboard.models import Replay
from dashboard.selectors.engine_facts import engine_facts
from dashboard.selectors.engines import fleet
from dashboard.views.pages import CHARTED, STARTED, charts_page
from dashboard.views.sides import AGAINST

_TABLE = [*STARTED, "js/lib/addresses.js", *(f"js/fleet/{name}.js" for name in ("page", "sorting", "spark"))]
_COMPARE = [
    *STARTED,
    "js/lib/downloads.js",
    "js/what-if/figures.js",
    "js/replays/side_by_side.js",
    "js/compare/sides.js",
]


def fleet_page(request: HttpRequest) -> HttpResponse:
    """Every engine in one table."""
    return _table(request, "fleet", "Engines")


def models_page(request: HttpRequest) -> HttpResponse:
    """The engines that serve the same model, added up."""
    return _table(request, "models", "Models")


def _table(request: HttpRequest, name: str, what: str) -> HttpResponse:
    colours = legend((*TIER_ORDER, COMPUTED, UNTOLD))
    return charts_page(request, f"{name}.html", [*_TABLE, f"js/{name}/rows.js"], name=name, what=what, legend=colours)


def engine_page(request: HttpRequest, name: str) -> HttpResponse:
    """One engine. A replay is none, and is shown by the pages of charts."""
    is_name = name.isprintable()  # PostgreSQL takes no NUL, not even to look for it
    facts = engine_facts(name, fleet(), datetime.now(UTC)) if is_name else None
    if is_name and facts is None and Replay.objects.filter(source__name=name).exclude(extent={}).exists():
        return redirect(f"{reverse('overview')}?{urlencode({'engine': name})}")
    if facts is None:
        return render(request, "no_engine.html", {"name": name[:200]}, status=404)
    modules = [*CHARTED, "js/engine/facts.js"]
    more = {"page_engine": name, "source": facts.source, "is_own": facts.is_own, "models": facts.models}
    return charts_page(request, "engine.html", modules, **more, request_query=urlencode({"engine": name}))


def compare_page(request: HttpRequest) -> HttpResponse:
    """Two engines in one period, or one or all in two periods."""
    return charts_page(request, "compare.html", _COMPARE, against=AGAINST, sides=("left", "right"))
