"""One worker at a time: whoever moves a row's `due_at` first has it until then. Knows nothing about what is due."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from dashboard.models import Discovery, Source

Row = TypeVar("Row", Source, Discovery)

SECONDS = 60  # longer than any message can take, so a claim ends only with its holder
# A row whose time is between now and then may be claimed, or wait for its turn; `is_due` looks closer at later ones.
SOON = timedelta(seconds=SECONDS + 1)


def is_due(due_at: datetime, every_seconds: int, now: datetime) -> bool:
    """Also one whose time is further away than it can be: the clock was set back since, and would be waited for."""
    return due_at <= now or due_at > now + max(SOON, timedelta(seconds=every_seconds + 1))


def claim(row: Row, now: datetime) -> bool:
    """False where another was first. What ends the claim compares `due_at`, so a claim that ran out ends nothing."""
    until = now + timedelta(seconds=SECONDS)
    if not type(row)._default_manager.filter(pk=row.pk, due_at=row.due_at).update(due_at=until):
        return False
    row.due_at = until
    return True


def claim_many(rows: QuerySet[Row], every_seconds: Callable[[Row], int], now: datetime) -> list[Row]:
    """Those of the rows that are due, claimed together: whoever comes second reads them when they are not due."""
    until = now + timedelta(seconds=SECONDS)
    with transaction.atomic():
        locked = rows.select_for_update(of=("self",)).order_by("pk")
        mine = [row for row in locked if is_due(row.due_at, every_seconds(row), now)]
        rows.model._default_manager.filter(pk__in=[row.pk for row in mine]).update(due_at=until)
    for row in mine:
        row.due_at = until
    return mine
