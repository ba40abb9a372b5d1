"""Alerts as they stand: firing, pending, and what was over lately. Reads only."""

from collections.abc import Collection

from django.db.models import Min

from dashboard.alert_words import WORDS
from dashboard.models import Alert, AlertRule, Series

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


def alerts_of(engine: str, source: str) -> list[Alert]:
    """Those of the active ones that name the engine, or the source that it is read from."""
    named = {("engine", engine), ("source", source)}
    return [alert for alert in active_alerts() if named & set(alert.labels.items())]


def engines_of(alerts: Collection[Alert]) -> dict[int, str]:
    """Alert's id → the engine that it is about: the one it names, or the first that its source told of."""
    named = {alert.pk: alert.labels["engine"] for alert in alerts if "engine" in alert.labels}
    sources = {alert.pk: alert.labels["source"] for alert in alerts if "source" in alert.labels}
    series = Series.objects.filter(metric=Series.Metric.SCRAPES, source__name__in=set(sources.values()))
    first = dict(series.values_list("source__name").annotate(Min("engine")))
    return {pk: first[source] for pk, source in sources.items() if source in first} | named


def resolved_alerts() -> list[Alert]:
    """The newest that are over."""
    rows = Alert.objects.filter(state=Alert.State.RESOLVED).select_related("rule")
    return list(rows.order_by("-resolved_at", "-pk")[:MOST_RESOLVED])
