"""This moment in words: engines, their tiers, how fresh each source is, and sample traffic. Reads no counts."""

from datetime import UTC, datetime
from typing import Any

from dashboard import sample_traffic
from dashboard.charts import words
from dashboard.models import CacheTier
from dashboard.selectors import present
from dashboard.selectors.alerts import num_firing
from dashboard.selectors.engines import Fleet, LiveEngine, LiveTier, fleet
from dashboard.selectors.tier_states import SHRINKING
from dashboard.sizes import format_size
from dashboard.tier_modes import modes_in_words

# An engine that starts again is away for half a minute while its model loads.
_UNSEEN_SECONDS = 45


def state_now(engine: str | None, now: float) -> dict[str, Any]:
    """What every page with charts says about this moment; `engine` keeps one of the running engines."""
    return state_of_page(fleet(), engine, now)


def state_of_page(alive: Fleet, engine: str | None, now: float) -> dict[str, Any]:
    """The same, where the page has asked for the running engines itself."""
    return {
        "has_any_traffic": present.has_traffic(engine),
        "engines": engines_now(alive, engine),
        "problem": alive.problem,
        "sources": sources_now(present.freshness(datetime.fromtimestamp(now, UTC))),
        "sample_traffic": sample_traffic_now(),
        "num_firing": num_firing(),
        "at": now,
    }


def engines_now(alive: Fleet, engine: str | None) -> list[dict[str, Any]]:
    """The running engines, or the one that is asked for."""
    return [_engine(live) for name, live in sorted(alive.engines.items()) if engine in (None, name)]


def _engine(live: LiveEngine) -> dict[str, Any]:
    return {
        "name": live.name,
        "model_name": live.model_name,
        "status": live.status,
        "progress_text": live.progress_text,
        "progress": live.progress,
        "requests_text": f"{live.requests_running} running, {live.requests_waiting} waiting",
        "tiers": [_tier(tier, live.tiers[tier]) for tier in CacheTier.values if _is_there(live.tiers.get(tier))],
    }


def _is_there(live: LiveTier | None) -> bool:
    """A tier that is switched off is shown as such; one that this engine cannot have at all is left out."""
    return live is not None and bool(live.capacity_bytes or live.max_bytes)


def _size(live: LiveTier) -> str:
    if not live.capacity_bytes and not live.used_bytes:
        return "off"
    return f"{format_size(live.used_bytes)} of {format_size(live.capacity_bytes)}"


def _tier(name: str, live: LiveTier) -> dict[str, Any]:
    return {
        "tier": name,
        "size_text": _size(live),
        "used_percent": min(100.0, 100 * live.used_bytes / live.capacity_bytes) if live.capacity_bytes else 0.0,
        "modes_text": modes_in_words(name, live.modes),
        "resident_text": f"{live.resident_tokens:,} resident tokens",
        "reason": live.reason or (SHRINKING if live.used_bytes > live.capacity_bytes else ""),
    }


def sources_now(freshness: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each source with a sentence when its numbers are old; the sentence is empty when all is well."""
    texts = {seen["source"]: _sentence(seen) for seen in freshness}
    return [{"source": source, "is_stale": bool(text), "text": text} for source, text in texts.items()]


def _sentence(seen: dict[str, Any]) -> str:
    source, age_seconds = seen["source"], seen["age_seconds"]
    if seen["is_stale"]:
        return f"Source {source} is {seen['state']}. {seen['sentence']}"
    if age_seconds is not None and age_seconds > _UNSEEN_SECONDS:
        return f"No engine of source {source} is there now; the last was seen {words.ago(age_seconds)}."
    return ""


def sample_traffic_now() -> dict[str, Any] | None:
    return sample_traffic.progress()
