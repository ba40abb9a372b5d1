"""Changes of tiers, as marks to draw on charts. Reads only."""

from datetime import UTC, datetime
from typing import Any

from dashboard.models import TierChange
from dashboard.selectors.period import Period
from dashboard.selectors.resizes import large_factor
from dashboard.sizes import format_size

MAX_MARKS = 200  # more cannot be told apart on a chart; the newest are kept
_VERBS = {
    "resize": "resized",
    "write_mode": "write mode",
    "store_after_hits": "stored",
    "tenant_quota": "largest share of a tenant",
    "clear": "cleared",
}


def size_changes(period: Period, *, engine: str | None = None) -> list[dict[str, Any]]:
    """[{"at": Unix seconds, "engine", "cache_tier", "action", "old_value", "new_value", "author", "text"}], by time."""
    start, end = (datetime.fromtimestamp(moment, tz=UTC) for moment in (period.start, period.end))
    changes = TierChange.objects.filter(at__gte=start, at__lt=end).select_related("author").order_by("-at", "-pk")
    if engine:
        changes = changes.filter(engine=engine)
    return [_mark(change) for change in reversed(changes[:MAX_MARKS])]


def _mark(change: TierChange) -> dict[str, Any]:
    author = change.author.get_username() if change.author else ""
    return {
        "at": change.at.timestamp(),
        "engine": change.engine,
        "cache_tier": change.cache_tier,
        "action": change.action,
        "old_value": change.old_value,
        "new_value": change.new_value,
        "author": author,
        "text": _text(change, author),
    }


def _text(change: TierChange, author: str) -> str:
    """ "local cpu resized: 192 MiB → 1 GiB (admin)"."""
    values = " → ".join(_shown(value) for value in (change.old_value, change.new_value) if value)
    values = ", ".join(filter(None, [values, large_factor(change.old_value, change.new_value)]))
    text = f"{change.engine} {change.cache_tier} {_VERBS.get(change.action, change.action)}"
    return text + (f": {values}" if values else "") + (f" ({author})" if author else "")


def _shown(value: str) -> str:
    return format_size(int(value)) if value.isascii() and value.isdigit() else value
