"""What a cache tells of itself: frozen integers by tier. Knows nothing about Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tiers.names import Tier

# Seconds a block's copy may take: 20 µs is a slab from near memory, 2 s a disk in trouble.
LOAD_BOUNDS = (
    *(0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
)
EVICTION_REASONS = ("capacity", "resize", "clear", "corrupt", "moved")
OPS = ("load", "store")


@dataclass(frozen=True)
class LoadSeconds:
    """`counts[i]` loads took ≤ `bounds[i]` and more than the bound before; the last count is those above all."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum_seconds: float


@dataclass(frozen=True)
class TierStats:
    """One tier now, and its counters since the start. `pinned_blocks` are those that requests hold."""

    capacity_bytes: int
    capacity_blocks: int
    block_bytes: int
    used_bytes: int
    resident_blocks: int
    resident_tokens: int
    pinned_blocks: int
    stored_blocks: int
    stored_bytes: int
    loaded_blocks: int
    loaded_bytes: int
    evicted_blocks: Mapping[str, int]
    errors: Mapping[str, int]
    load_seconds: LoadSeconds


@dataclass(frozen=True)
class CacheStats:
    """Every configured tier's stats."""

    tiers: Mapping[Tier, TierStats]

    def __getitem__(self, tier: Tier) -> TierStats:
        return self.tiers[tier]

    def __iter__(self) -> Iterator[Tier]:
        return iter(self.tiers)


@dataclass
class TierCounters:
    """What a level counts as it goes. Every reason and operation is there from the start, with 0."""

    stored_blocks: int = 0
    loaded_blocks: int = 0
    evicted: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(EVICTION_REASONS, 0)))
    errors: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OPS, 0)))
    load_counts: list[int] = field(default_factory=lambda: [0] * (len(LOAD_BOUNDS) + 1))
    load_sum_seconds: float = 0.0

    def loaded(self, seconds: float) -> None:
        self.loaded_blocks += 1
        self.load_counts[bisect_left(LOAD_BOUNDS, seconds)] += 1
        self.load_sum_seconds += seconds

    @property
    def load_seconds(self) -> LoadSeconds:
        return LoadSeconds(LOAD_BOUNDS, tuple(self.load_counts), self.load_sum_seconds)
