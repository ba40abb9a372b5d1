"""Sources that are read from a Prometheus, and lists of engines that are. Knows nothing about what it answers."""

from datetime import datetime

from dashboard import valkey as names
from dashboard.models import Discovery, Source
from dashboard.services.discovery import Changed, refresh
from dashboard.services.recording import record
from tests.dashboard.past import SELECTOR, STEP
from tests.dashboard.told import moment


def source(url: str, selector: str = SELECTOR, **told: object) -> Source:
    """Read as often as its engine is, every minute."""
    usual = {"name": "prod", "kind": "auto", "url": url, "selector": selector, "interval_seconds": STEP}
    return Source.objects.create(**usual | told)


def look(of: Source, now: datetime) -> Source:
    """As the worker does when its time has come."""
    Source.objects.filter(pk=of.pk).update(due_at=now)
    record(of.pk, now=now, connection=names.client())
    of.refresh_from_db()
    return of


def refreshed(found_by: Discovery, second: int) -> Changed | None:
    Discovery.objects.filter(pk=found_by.pk).update(due_at=moment(second))
    return refresh(found_by.pk, now=moment(second))
