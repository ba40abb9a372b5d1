"""How a cache is made up: the slab of a block, the tiers and their sizes; and what can be wrong with a size."""

import math
from dataclasses import dataclass
from pathlib import Path

from tiers.names import TIERS, Policy, Tier, WriteMode


class CapacityError(Exception):
    """More blocks were asked for than the gpu tier can ever hold at its present size."""


class RefusedError(Exception):
    """A size that cannot be given, with the reason; the old size stays."""


@dataclass(frozen=True)
class SlabSpec:
    """One block's keys and values across all layers: contiguous bytes, and how the engine reads them."""

    num_bytes: int
    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.num_bytes < 1:
            raise ValueError(f"A slab of {self.num_bytes} bytes holds nothing; expected at least 1.")
        if self.num_bytes % math.prod(self.shape):
            raise ValueError(f"A slab of {self.num_bytes} bytes does not hold whole elements of shape {self.shape}.")


@dataclass(frozen=True)
class TierConfig:
    """One tier. `path` is the folder of the disk tier."""

    tier: Tier
    capacity_bytes: int
    write_mode: WriteMode = WriteMode.WRITE_BACK
    policy: Policy = Policy.LRU
    path: Path | None = None

    def __post_init__(self) -> None:
        if self.capacity_bytes < 0:
            raise ValueError(f"The {self.tier} tier cannot have {self.capacity_bytes} bytes; expected 0 or more.")


@dataclass(frozen=True)
class CacheConfig:
    """Tiers in canonical order, gpu first. `fingerprint` tells models apart: nothing is shared between two."""

    block_size: int
    slab: SlabSpec
    fingerprint: str
    tiers: tuple[TierConfig, ...]

    def __post_init__(self) -> None:
        order = [TIERS.index(config.tier) for config in self.tiers]
        if not order or order[0] != 0 or order != sorted(set(order)):
            raise ValueError(f"Tiers must start with gpu and come in the order {', '.join(TIERS)}, each once.")
        if self.block_size < 1:
            raise ValueError(f"A block of {self.block_size} tokens holds nothing; expected at least 1.")
