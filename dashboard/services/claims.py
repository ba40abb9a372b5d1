"""One worker at a time: whoever moves a row's `due_at` first has it until then. Knows nothing about what is due."""

from datetime import datetime, timedelta

from dashboard.models import Discovery, Source


def claim(row: Source | Discovery, now: datetime, seconds: int) -> bool:
    """False where another was first. What ends the claim compares `due_at`, so a claim that ran out ends nothing."""
    until = now + timedelta(seconds=seconds)
    if not type(row)._default_manager.filter(pk=row.pk, due_at=row.due_at).update(due_at=until):
        return False
    row.due_at = until
    return True
