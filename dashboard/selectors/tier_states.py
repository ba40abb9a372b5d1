"""What an admin sees of every tier: asked for, applied, used, and why asked and applied differ.

Turns numbers into the words of the page, once, for the first rendering and for the live update. Writes nothing.
"""

from dataclasses import dataclass

from django.db.models import Max

from dashboard.models import CacheTier, TierChange, TierSetting
from dashboard.selectors.engines import Fleet, LiveEngine, LiveTier, fleet
from dashboard.selectors.resizes import large_factor
from dashboard.sizes import format_size
from dashboard.tier_modes import modes_in_words, modes_of
from dashboard.zone import in_words

UNKNOWN = "–"
_NAMES = {"tenant_quota": "largest share of one tenant"}  # as its field is called
_Changes = dict[tuple[str, str], list[TierChange]]  # by engine and tier
SHRINKING = "It still holds more than its new size: what running requests read leaves when they are done."


@dataclass(frozen=True)
class TierState:
    """One row of the panel, in words; `used_percent` is 0..100 or None where nothing is known."""

    setting_id: int
    cache_tier: str
    label: str
    desired: str
    applied: str
    used: str
    used_percent: int | None
    resident_tokens: str
    resident_blocks: str
    maximum: str
    maximum_reason: str
    modes: str
    applied_modes: str  # where it runs with others
    state: str  # applied, pending, shrinking, differs, loading, failed, offline, unknown
    note: str
    last_change: str


@dataclass(frozen=True)
class EngineState:
    """One engine's headline and its tiers, fastest first."""

    name: str
    headline: str
    is_online: bool
    tiers: tuple[TierState, ...]


@dataclass(frozen=True)
class Panel:
    problem: str
    engines: tuple[EngineState, ...]


def panel() -> Panel:
    """Every tier of every engine that has settings, offline ones too."""
    alive = fleet()
    changes = _last_changes()
    by_engine: dict[str, list[TierState]] = {}
    for setting in sorted(TierSetting.objects.all(), key=_canonical):
        by_engine.setdefault(setting.engine, []).append(_tier_state(setting, alive, changes))
    engines = (
        EngineState(name, _headline(alive, name), name in alive.engines, tuple(tiers))
        for name, tiers in by_engine.items()
    )
    return Panel(alive.problem, tuple(engines))


def tier_state(setting: TierSetting) -> TierState:
    """One tier's row."""
    return _tier_state(setting, fleet(), _last_changes())


def _canonical(setting: TierSetting) -> tuple[str, int]:
    return setting.engine, CacheTier.values.index(setting.cache_tier)


def _last_changes() -> _Changes:
    """What was changed last of every tier, by engine and tier: all that was saved together, at one moment."""
    newest = TierChange.objects.order_by().values("engine", "cache_tier").annotate(newest=Max("at"))
    moments = {(row["engine"], row["cache_tier"]): row["newest"] for row in newest}
    found = TierChange.objects.filter(at__in=set(moments.values())).select_related("author").order_by("pk")
    changes: _Changes = {}
    for change in found:
        tier = (change.engine, change.cache_tier)
        if change.at == moments[tier]:
            changes.setdefault(tier, []).append(change)
    return changes


def _tier_state(setting: TierSetting, alive: Fleet, changes: _Changes) -> TierState:
    engine = alive.engines.get(setting.engine)
    live = engine.tiers.get(setting.cache_tier) if engine else None
    state, note = _difference(setting, alive, engine, live)
    return TierState(
        setting_id=setting.pk,
        cache_tier=setting.cache_tier,
        label=setting.get_cache_tier_display(),
        desired=format_size(setting.desired_bytes),
        applied=_size(_applied_bytes(setting, live) if live else None),
        used=_size(live.used_bytes if live else None),
        used_percent=_percent(live),
        resident_tokens=_count(live.resident_tokens if live else None),
        resident_blocks=_count(live.resident_blocks if live else None),
        maximum=_size(live.max_bytes if live else None),
        maximum_reason=live.max_reason if live else "",
        modes=modes_in_words(setting.cache_tier, modes_of(setting)),
        applied_modes=_other_modes(setting, live),
        state=state,
        note=note,
        last_change=_words(changes.get((setting.engine, setting.cache_tier), [])),
    )


def _difference(
    setting: TierSetting, alive: Fleet, engine: LiveEngine | None, live: LiveTier | None
) -> tuple[str, str]:
    """The row's state, and why applied is not desired."""
    if alive.problem:
        return "unknown", alive.problem
    if engine is None:
        return "offline", f"Engine {setting.engine} is offline; the setting is kept and applied at its next start."
    if engine.status == "failed":
        return "failed", f"Engine {setting.engine} could not start: {engine.progress_text}"
    if engine.status == "loading" or live is None:
        return "loading", f"Engine {setting.engine} is starting; the setting is applied when it is ready."
    if setting.reason or live.reason:
        return "differs", setting.reason or live.reason
    # Whole blocks only: a size that holds as many blocks as what was asked for is what was asked for.
    is_size = abs(setting.desired_bytes - _applied_bytes(setting, live)) < max(live.block_bytes or 0, 1)
    if not is_size or live.modes not in ({}, modes_of(setting)):
        return "pending", "Being applied."
    if live.used_bytes > live.capacity_bytes:
        return "shrinking", SHRINKING
    return "applied", live.warning


def _applied_bytes(setting: TierSetting, live: LiveTier) -> int:
    """What the engine's worker wrote down when it applied it: up to a second newer than what it publishes."""
    return live.capacity_bytes if setting.applied_bytes is None else setting.applied_bytes


def _other_modes(setting: TierSetting, live: LiveTier | None) -> str:
    if live is None or live.modes in ({}, modes_of(setting)):
        return ""
    return f"runs with {modes_in_words(setting.cache_tier, live.modes)}"


def _headline(alive: Fleet, name: str) -> str:
    engine = alive.engines.get(name)
    if engine is None:
        return "state unknown" if alive.problem else "offline"
    if engine.status == "failed":
        return f"failed: {engine.progress_text}"
    if engine.status == "loading":
        return f"loading: {engine.progress_text} {engine.progress:.0%}"
    requests = f"{engine.requests_running} running, {engine.requests_waiting} waiting"
    return ", ".join(filter(None, [engine.model_name, engine.status, requests]))


def _percent(live: LiveTier | None) -> int | None:
    if live is None:
        return None
    return min(100, 100 * live.used_bytes // live.capacity_bytes) if live.capacity_bytes else 0


def _size(num_bytes: int | None) -> str:
    return UNKNOWN if num_bytes is None else format_size(num_bytes)


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def change_in_words(change: TierChange) -> str:
    """ "resize 128 MiB → 128 B, ▼ ÷ 1,048,576", "policy lru → arc" """
    name = _NAMES.get(change.action, change.get_action_display())
    words = f"{name} {change.old_value} → {change.new_value}".replace("_", " ")
    return ", ".join(filter(None, [words, large_factor(change.old_value, change.new_value)]))


def _words(changes: list[TierChange]) -> str:
    """ "resize 96 MiB → 128 MiB, policy lru → arc, by ada, 2026-11-29 16:20:05" """
    if not changes:
        return "as the engine's defaults have it"
    what = ", ".join(map(_what, changes))
    author = changes[-1].author.get_username() if changes[-1].author else "a deleted user"
    return f"{what}, by {author}, {in_words(changes[-1].at)}"


def _what(change: TierChange) -> str:
    return (
        f"clear: {change.new_value or 'waiting for the engine'}"
        if change.action == "clear"
        else change_in_words(change)
    )
