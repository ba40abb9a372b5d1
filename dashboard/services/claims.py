"""One worker at a time: whoever moves a row's `due_at` first has it until then. Knows nothing about what is due."""

from datetime import datetime, timedelta

from dashboard.models import Discovery, Source

SECONDS = 60  # longer than any message can take, so a claim ends only with its holder
# A row whose time is between now and then may be claimed, or wait for its turn; `is_due` looks closer at later ones.
SOON = timedelta(seconds=SECONDS + 1)


def is_due(due_at: datetime, every_seconds: int, now: datetime) -> bool:
    """Also one whose time is further away than it can be: the clock was set back since, and would be waited for."""
    return due_at <= now or due_at > now + max(SOON, timedelta(seconds=every_seconds + 1))


def claim(row: Source | Discovery, now: datetime) -> bool:
    """False where another was first. What ends the claim compares `due_at`, so a claim that ran out ends nothing."""
    until = now + timedelta(seconds=SECONDS)
    if not type(row)._default_manager.filter(pk=row.pk, due_at=row.due_at).update(due_at=until):
        return False
    row.due_at = until
    return True
