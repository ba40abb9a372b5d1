"""How large each tier of one engine is now, in bytes and in tokens, and how it is written to. Reads only.

A running engine tells it; settings and the newest readings do for one that is offline, readings for a watched one or
a replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.models import Replay, Resolution, TierSetting
from dashboard.selectors.engines import Fleet, LiveTier
from dashboard.selectors.runs import newest
from dashboard.selectors.store import Metric, series_of
from dashboard.selectors.tier_costs import TIERS
from dashboard.tier_modes import MODES, Modes, modes_of

Readings = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class TierSize:
    """`num_bytes` is today's size; `modes` is empty where the engine does not tell them."""

    tier: str
    num_bytes: int
    bytes_a_token: float
    least_bytes: int = 0
    most_bytes: int | None = None  # what the machine has
    modes: Modes = field(default_factory=dict)

    def tokens(self, num_bytes: int) -> int:
        return int(num_bytes / self.bytes_a_token)


def tier_sizes(alive: Fleet, readings: Readings, *, engine: str) -> tuple[TierSize, ...]:
    """Fastest first; tiers of which nobody tells how many bytes a token takes are left out."""
    live = alive.engines[engine].tiers if engine in alive.engines else {}
    replayed = _replayed_modes(engine)
    settings = {setting.cache_tier: setting for setting in TierSetting.objects.filter(engine=engine)}
    ratios = {tier: ratio for tier in TIERS if (ratio := _ratio(live.get(tier), readings.get(tier, {})))}
    usual = next(iter(ratios.values()), None)
    found = []
    for tier in TIERS:
        size = _size(live.get(tier), settings.get(tier), readings.get(tier, {}))
        ratio = ratios.get(tier, usual)
        if size is None or ratio is None or not _can_be(live.get(tier)):
            continue
        found.append(_tier(tier, size, ratio, live.get(tier), settings.get(tier), replayed.get(tier, {})))
    return tuple(found)


def _replayed_modes(engine: str) -> dict[str, Modes]:
    """Of a replay, which says itself how it was run."""
    replay = Replay.objects.filter(source__name=engine).first()
    return {told["tier"]: {name: told.get(name, "always") for name in MODES} for told in replay.tiers} if replay else {}


def _tier(
    tier: str, size: int, ratio: float, live: LiveTier | None, setting: TierSetting | None, otherwise: Modes
) -> TierSize:
    modes: Modes = live.modes if live and live.modes else modes_of(setting) if setting else otherwise
    if live is None:
        return TierSize(tier, size, ratio, modes=modes)
    return TierSize(tier, size, ratio, max(live.min_bytes, 0), live.max_bytes, modes)


def _can_be(live: LiveTier | None) -> bool:
    """One that a running engine cannot have at all is left out."""
    return live is None or bool(live.capacity_bytes or live.max_bytes or live.max_bytes is None)


def _size(live: LiveTier | None, setting: TierSetting | None, reading: Mapping[str, float]) -> int | None:
    if live is not None:
        return live.capacity_bytes
    if setting is not None:
        return setting.desired_bytes if setting.applied_bytes is None else setting.applied_bytes
    told = reading.get(Metric.CAPACITY_BYTES)
    return None if told is None else round(told)


def _ratio(live: LiveTier | None, reading: Mapping[str, float]) -> float | None:
    """Bytes a token, None where nobody tells."""
    if live and live.block_bytes and live.block_tokens:
        return live.block_bytes / live.block_tokens
    num_bytes, tokens = reading.get(Metric.CAPACITY_BYTES), reading.get(Metric.CAPACITY_TOKENS)
    return num_bytes / tokens if num_bytes and tokens else None


def capacity_readings(*, engine: str, model_name: str | None = None) -> Readings:
    """By tier and metric, the mean of the newest hour that has any."""
    series = series_of((Metric.CAPACITY_BYTES, Metric.CAPACITY_TOKENS), engine=engine, model_name=model_name)
    told = {pk: (tier, metric) for pk, tier, metric in series.values_list("pk", "cache_tier", "metric")}
    found: dict[str, dict[str, float]] = {}
    for pk, mean in newest(told, Resolution.HOUR).items():
        tier, metric = told[pk]
        found.setdefault(tier, {})[metric] = mean
    return found
