"""Every write of alerts: conditions become pending, firing, resolved; what changed is put down to be told.

Nothing is sent here (services/webhooks.py does): a slow server must not hold a transaction.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from dashboard.alert_words import WORDS
from dashboard.models import Alert, AlertNotice, AlertRule, Series, Webhook
from dashboard.selectors.alert_conditions import Finding, findings
from dashboard.selectors.alerts import alert_rules
from dashboard.services.alert_payload import payloads

KEPT = timedelta(days=30)
State = Alert.State


def ensure_rules() -> list[AlertRule]:
    """One row a kind, made with the thresholds of deploy/prometheus/rules.yml at the first call."""
    if AlertRule.objects.count() < len(WORDS):
        for rule in alert_rules():
            begins = {"threshold": rule.threshold, "for_minutes": rule.for_minutes}
            AlertRule.objects.get_or_create(kind=rule.kind, defaults=begins)
    return list(AlertRule.objects.all())


def evaluate(now: datetime) -> list[Alert]:
    """Looks at every rule once; the alerts that began to fire, or ended, with it. May run twice at once: each rule's
    row is locked while its alerts change. Of a source that cannot be read they stay as they are.
    """
    changed: list[Alert] = []
    for rule in ensure_rules():
        unread: set[int] = set()
        held = findings(rule.kind, rule.threshold, now.timestamp(), unread) if rule.is_enabled else []
        changed += _apply(rule, held, _engines_of(unread), now)
    return changed


def _engines_of(sources: set[int]) -> set[str]:
    return set(Series.objects.filter(source__in=sources).values_list("engine", flat=True)) if sources else set()


@transaction.atomic
def _apply(rule: AlertRule, held: Sequence[Finding], unknown: Collection[str], now: datetime) -> list[Alert]:
    AlertRule.objects.select_for_update().get(pk=rule.pk)
    active = {alert.fingerprint: alert for alert in rule.alerts.exclude(state=State.RESOLVED)}
    found = {fingerprint(rule.kind, finding.labels): finding for finding in held}
    changed = [_hold(active.get(key), rule, key, finding, now) for key, finding in found.items()]
    over = (alert for key, alert in active.items() if key not in found and alert.labels.get("engine") not in unknown)
    changed += [_end(alert, now) for alert in over]
    told = [alert for alert in changed if alert is not None]
    _put_down(told, now)
    return told


def _hold(alert: Alert | None, rule: AlertRule, key: str, finding: Finding, now: datetime) -> Alert | None:
    """The alert, where it begins to fire now."""
    alert = alert or Alert(rule=rule, fingerprint=key, labels=dict(finding.labels), pending_at=now)
    is_same = (alert.value, alert.summary) == (finding.value, finding.summary)
    alert.value, alert.summary = finding.value, finding.summary
    begins = alert.state == State.PENDING and now - alert.pending_at >= timedelta(minutes=rule.for_minutes)
    if begins:
        alert.state, alert.firing_at = State.FIRING, now
    if begins or not (alert.pk and is_same):  # five hundred sources that are stale stay so for a while
        alert.save()
    return alert if begins else None


def _end(alert: Alert, now: datetime) -> Alert | None:
    """The alert, where it had been told. One that only was pending leaves nothing behind, as in Prometheus."""
    if alert.state == State.PENDING:
        alert.delete()
        return None
    alert.state, alert.resolved_at = State.RESOLVED, now
    alert.save()
    return alert


def _put_down(changed: Sequence[Alert], now: datetime) -> None:
    notices = (
        AlertNotice(webhook=webhook, payload=payload, created_at=now, due_at=now)
        for webhook in Webhook.objects.filter(is_enabled=True)
        for payload in payloads(_wanted(webhook, changed), webhook.name)
    )
    AlertNotice.objects.bulk_create(notices)


def _wanted(webhook: Webhook, changed: Iterable[Alert]) -> list[Alert]:
    return [alert for alert in changed if webhook.sends_resolved or alert.state == State.FIRING]


def fingerprint(kind: str, labels: Mapping[str, str]) -> str:
    """The same for the same labels, in whatever order: 16 hexadecimal digits, as Alertmanager's are."""
    return hashlib.blake2b(json.dumps([kind, labels], sort_keys=True).encode(), digest_size=8).hexdigest()


def expire(now: datetime) -> None:
    """Forgets what ended long ago."""
    Alert.objects.filter(state=State.RESOLVED, resolved_at__lt=now - KEPT).delete()
