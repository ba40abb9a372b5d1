"""The page of alerts with its JSON, and how many fire for the header of every page."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.alert_words import WORDS
from dashboard.charts.words import ago
from dashboard.models import Alert, AlertRule
from dashboard.selectors import alerts as selected
from dashboard.views.answers import json_view
from dashboard.zone import in_words

_MODULES = [
    *(f"js/lib/{name}.js" for name in ("addresses", "api", "dom", "firing")),
    "js/overview/live.js",
    "js/alerts/rows.js",
]


def alerts(request: HttpRequest) -> HttpResponse:
    """The rules with their thresholds; what fires, is pending and was over lately is filled in by the page's script."""
    rules = [_rule(rule) for rule in selected.alert_rules()]
    return render(request, "alerts.html", {"rules": rules, "modules": _MODULES})


@json_view()
def alerts_json(request: HttpRequest) -> dict[str, Any]:
    """What fires, what is pending, and what was over lately, in words."""
    now = timezone.now()
    active, resolved = selected.active_alerts(), selected.resolved_alerts()
    engines = selected.engines_of([*active, *resolved])
    return {
        "active": [_row(alert, engines, now) for alert in active],
        "resolved": [_row(alert, engines, now) for alert in resolved],
        "as_of": in_words(now),
        "num_firing": selected.num_firing(),
    }


def firing(request: HttpRequest) -> dict[str, Any]:
    """A context processor; asked only where a template shows it."""
    return {"num_firing": selected.num_firing}


def _row(alert: Alert, engines: Mapping[int, str], now: datetime) -> dict[str, Any]:
    since = {Alert.State.FIRING: alert.firing_at, Alert.State.RESOLVED: alert.resolved_at}.get(
        Alert.State(alert.state), alert.pending_at
    )
    return {
        "state": alert.state,
        "name": str(alert.rule),
        "summary": alert.summary,
        "engine": engines.get(alert.pk, ""),
        "runbook": WORDS[alert.rule.kind].runbook,
        "fired": in_words(alert.firing_at) if alert.firing_at else "",
        "since": in_words(since or alert.pending_at),
        "ago": ago((now - (since or alert.pending_at)).total_seconds()),
    }


def _rule(rule: AlertRule) -> dict[str, Any]:
    words = WORDS[rule.kind]
    return {"rule": rule, "name": words.name, "measures": words.measures, "runbook": words.runbook}
