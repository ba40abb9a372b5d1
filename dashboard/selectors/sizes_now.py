"""The size of every tier of every engine: what was asked for, what it runs with, what is used. Reads only.

Our own engines tell it live; watched ones by what was read of them in the last minutes. None means not told.
"""

from dataclasses import dataclass
from datetime import datetime

from dashboard.models import TierSetting
from dashboard.selectors.engines import Fleet, LiveTier
from dashboard.selectors.newest import Reading, newest_readings
from dashboard.selectors.store import TIER_ORDER, Metric

_TOLD = (Metric.CAPACITY_BYTES, Metric.USED_BYTES, Metric.RESIDENT_TOKENS, Metric.CAPACITY_TOKENS)


@dataclass(frozen=True)
class SizeRow:
    """`desired_bytes` and what follows `changed_at` only where the engine is ours; `reason` says why they differ."""

    engine: str
    tier: str
    desired_bytes: int | None
    applied_bytes: int | None
    used_bytes: int | None
    resident_tokens: int | None
    capacity_tokens: int | None
    changed_at: datetime | None = None
    applied_at: datetime | None = None
    policy: str | None = None
    write_mode: str | None = None
    store_after_hits: int | None = None
    load: str | None = None
    tenant_quota: float | None = None
    reason: str = ""


def size_rows(alive: Fleet, now: float, *, engine: str | None = None) -> list[SizeRow]:
    """By engine, then fastest first."""
    settings = TierSetting.objects.filter(engine=engine) if engine else TierSetting.objects.all()
    rows = [_own(setting, alive) for setting in settings]
    own = {row.engine for row in rows}
    readings = newest_readings(_TOLD, now, engine=engine)
    rows += [_watched(*place, told) for place, told in readings.items() if place[0] not in own]
    return sorted(rows, key=lambda row: (row.engine, TIER_ORDER.index(row.tier)))


def _own(setting: TierSetting, alive: Fleet) -> SizeRow:
    running = alive.engines.get(setting.engine)
    live = running.tiers.get(setting.cache_tier) if running else None
    return SizeRow(
        setting.engine,
        setting.cache_tier,
        desired_bytes=setting.desired_bytes,
        applied_bytes=setting.applied_bytes
        if live is None or setting.applied_bytes is not None
        else live.capacity_bytes,
        used_bytes=live.used_bytes if live else None,
        resident_tokens=live.resident_tokens if live else None,
        capacity_tokens=_capacity_tokens(live),
        changed_at=setting.changed_at,
        applied_at=setting.applied_at,
        policy=setting.policy,
        write_mode=setting.write_mode,
        store_after_hits=setting.store_after_hits,
        load=setting.load,
        tenant_quota=setting.tenant_quota,
        reason=setting.reason or (live.reason if live else ""),
    )


def _capacity_tokens(live: LiveTier | None) -> int | None:
    """Whole blocks only."""
    if live is None or not live.block_bytes or not live.block_tokens:
        return None
    return live.capacity_bytes // live.block_bytes * live.block_tokens


def _watched(engine: str, tier: str, told: Reading) -> SizeRow:
    return SizeRow(
        engine,
        tier,
        desired_bytes=None,
        applied_bytes=told.get(Metric.CAPACITY_BYTES),
        used_bytes=told.get(Metric.USED_BYTES),
        resident_tokens=told.get(Metric.RESIDENT_TOKENS),
        capacity_tokens=told.get(Metric.CAPACITY_TOKENS),
    )
