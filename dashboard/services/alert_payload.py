"""Alerts in the words of Alertmanager's webhook, version 4, so that whatever reads those reads ours. Sends nothing.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from django.conf import settings
from django.urls import reverse

from dashboard.alert_words import WORDS, labels_of
from dashboard.models import Alert

_NEVER = "0001-01-01T00:00:00Z"  # what Alertmanager writes for an end that has not come


def payloads(alerts: Sequence[Alert], receiver: str) -> Iterator[dict[str, Any]]:
    """One a kind of alert: a group, as with `group_by: [alertname]`."""
    for kind, group in groupby(sorted(alerts, key=lambda alert: alert.rule.kind), key=lambda alert: alert.rule.kind):
        yield _payload(kind, [_alert(alert) for alert in group], receiver)


def _payload(kind: str, told: list[dict[str, Any]], receiver: str) -> dict[str, Any]:
    name = WORDS[kind].name
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{name}"}}',
        "truncatedAlerts": 0,
        "status": "firing" if any(each["status"] == "firing" for each in told) else "resolved",
        "receiver": receiver,
        "groupLabels": {"alertname": name},
        "commonLabels": _common([each["labels"] for each in told]),
        "commonAnnotations": _common([each["annotations"] for each in told]),
        "externalURL": our_address(),
        "alerts": told,
    }


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "status": "resolved" if alert.state == Alert.State.RESOLVED else "firing",
        "labels": labels_of(alert.rule.kind, alert.labels),
        "annotations": {"summary": alert.summary, "runbook": WORDS[alert.rule.kind].runbook},
        "startsAt": _moment(alert.firing_at),
        "endsAt": _moment(alert.resolved_at),
        "generatorURL": f"{our_address()}{reverse('alerts')}",
        "fingerprint": alert.fingerprint,
    }


def our_address() -> str:
    """Where people reach the pages: the first trusted origin, else this machine's."""
    origins: list[str] = settings.CSRF_TRUSTED_ORIGINS
    named = [origin for origin in origins if "*" not in origin]
    return (named or [settings.LOCAL_URL])[0]


def _common(told: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = told
    return {name: text for name, text in first.items() if all(each.get(name) == text for each in others)}


def _moment(moment: datetime | None) -> str:
    return _NEVER if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
