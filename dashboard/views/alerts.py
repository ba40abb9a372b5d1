"""The page of alerts, and how many fire for the header of every page."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.alert_words import WORDS
from dashboard.charts.words import ago
from dashboard.models import Alert, AlertRule
from dashboard.selectors import alerts as selected


def alerts(request: HttpRequest) -> HttpResponse:
    """What fires, what is pending, what was over lately, and the rules with their thresholds."""
    now = timezone.now()
    context = {
        "active": [_row(alert, now) for alert in selected.active_alerts()],
        "resolved": [_row(alert, now) for alert in selected.resolved_alerts()],
        "rules": [_rule(rule) for rule in selected.alert_rules()],
    }
    return render(request, "alerts.html", context)


def firing(request: HttpRequest) -> dict[str, Any]:
    """A context processor; asked only where a template shows it."""
    return {"num_firing": selected.num_firing}


def _row(alert: Alert, now: datetime) -> dict[str, Any]:
    since = {Alert.State.FIRING: alert.firing_at, Alert.State.RESOLVED: alert.resolved_at}.get(
        Alert.State(alert.state), alert.pending_at
    )
    return {
        "alert": alert,
        "runbook": WORDS[alert.rule.kind].runbook,
        "since": since or alert.pending_at,
        "ago": ago((now - (since or alert.pending_at)).total_seconds()),
    }


def _rule(rule: AlertRule) -> dict[str, Any]:
    words = WORDS[rule.kind]
    return {"rule": rule, "name": words.name, "measures": words.measures, "runbook": words.runbook}
