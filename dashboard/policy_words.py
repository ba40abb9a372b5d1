"""Which policies and write modes can be tried, what a setup of them is, and its words. Pure; loads no tiers."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import TierSetting

Setup = tuple[tuple[str, str], ...]  # policy and write mode of each tier, fastest first
POLICIES: tuple[str, ...] = tuple(TierSetting.Policy.values)
WRITE_MODES: tuple[str, ...] = tuple(TierSetting.WriteMode.values)
_LRU, _WRITE_BACK = POLICIES[0], WRITE_MODES[0]
_THROUGH, _SELECTIVE = WRITE_MODES[1:]
_NAMES = {"lru": "LRU", "s3fifo": "S3-FIFO", "arc": "ARC"}


def setup_of(tiers: Sequence[Mapping[str, Any]]) -> Setup:
    """As the tiers are; nothing is written into gpu by a mode."""
    return tuple((told["policy"], _WRITE_BACK if told["tier"] == "gpu" else told["write_mode"]) for told in tiers)


def base_of(tiers: Sequence[Mapping[str, Any]]) -> Setup:
    """What the curve of all sizes predicts: LRU, and a tier that stores selectively as one that stores all."""
    return tuple((_LRU, _THROUGH if mode == _SELECTIVE else mode) for _, mode in setup_of(tiers))


def in_words(names: Sequence[str], setup: Setup, today: Setup) -> str:
    """What is other than today, like "cpu ARC and write through"; "" for today's."""
    told = [
        f"{name} {' and '.join(_changed(new, old))}"
        for name, new, old in zip(names, setup, today, strict=True)
        if new != old
    ]
    return ", ".join(told)


def _changed(new: tuple[str, str], old: tuple[str, str]) -> list[str]:
    policy = [_NAMES.get(new[0], new[0])] if new[0] != old[0] else []
    return policy + ([new[1].replace("_", " ")] if new[1] != old[1] else [])
