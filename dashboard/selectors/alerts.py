"""Alerts as they stand: firing, pending, and what was over lately. Reads only."""

from dashboard.alert_words import WORDS
from dashboard.models import Alert, AlertRule

MOST_RESOLVED = 50
MOST_ACTIVE = 500


def alert_rules() -> list[AlertRule]:
    """Every kind's row, as it will be made where there is none yet."""
    stored = {rule.kind: rule for rule in AlertRule.objects.all()}
    return [
        stored.get(kind) or AlertRule(kind=kind, threshold=words.threshold, for_minutes=words.for_minutes)
        for kind, words in WORDS.items()
    ]


def num_firing() -> int:
    return Alert.objects.filter(state=Alert.State.FIRING).count()


def active_alerts() -> list[Alert]:
    """Firing ones first, the newest of each first."""
    rows = Alert.objects.exclude(state=Alert.State.RESOLVED).select_related("rule")
    return sorted(
        rows.order_by("-pending_at", "-pk")[:MOST_ACTIVE], key=lambda alert: alert.state != Alert.State.FIRING
    )


def resolved_alerts() -> list[Alert]:
    """The newest that are over."""
    rows = Alert.objects.filter(state=Alert.State.RESOLVED).select_related("rule")
    return list(rows.order_by("-resolved_at", "-pk")[:MOST_RESOLVED])
