"""Frozen figures of a cache, and the histogram that collects load times. Knows nothing about who publishes them."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from tiers.flows import origins_of, ways_out_of
from tiers.names import Tier

LOAD_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
EVICTION_REASONS = ("capacity", "resize", "clear", "corrupt", "expired", "orphaned", "quota")
OPERATIONS = ("load", "store")


@dataclass(frozen=True)
class LoadSeconds:
    """`counts[i]` loads took ≤ `bounds[i]` and more than the bound before; the last count is above every bound."""

    bounds: tuple[float, ...] = LOAD_BOUNDS
    counts: tuple[int, ...] = (0,) * (len(LOAD_BOUNDS) + 1)
    sum_seconds: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class LoadTimer:
    """Collects how long copies out of one tier took."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(LOAD_BOUNDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float, times: int) -> None:
        """So many copies took so long each."""
        self._counts[bisect_left(LOAD_BOUNDS, seconds)] += times
        self._sum += seconds * times

    def read(self) -> LoadSeconds:
        return LoadSeconds(LOAD_BOUNDS, tuple(self._counts), self._sum)


@dataclass(frozen=True)
class Health:
    """Of a tier that can fail as a whole. `state` is its breaker's; a sentence is empty if there is nothing to say.

    `is_known`: what others have left there has been read; until then the tier looks emptier than it is.
    """

    state: str = "closed"
    num_opened: int = 0
    last_error: str = ""
    warning: str = ""
    is_known: bool = True

    @property
    def is_up(self) -> bool:
        return self.state == "closed"


@dataclass(frozen=True)
class TierStats:
    """One tier. `pinned_blocks` of the resident ones are being read; `used_bytes` of gpu also counts private blocks.

    `stored_*` came into the tier by a copy, `loaded_*` were copied from it to gpu; `store_seconds` and `load_seconds`
    are what those copies took on their threads. `evicted_blocks` left it, by why, whether they moved to a slower tier
    or were dropped; `refused_blocks` were not stored, since their tenant had its share and nothing of that could leave.
    `entered_blocks` and `left_blocks` are by where they came from and went (`flows`); `missed_blocks` were computed
    again soon after the tier had dropped them. `tenant_blocks` are the resident ones by whose they are.
    """

    capacity_bytes: int
    capacity_blocks: int
    block_bytes: int
    used_bytes: int
    resident_blocks: int
    resident_tokens: int
    pinned_blocks: int
    stored_bytes: int
    stored_blocks: int
    loaded_bytes: int
    loaded_blocks: int
    evicted_blocks: Mapping[str, int]
    errors: Mapping[str, int]
    load_seconds: LoadSeconds
    store_seconds: float
    entered_blocks: Mapping[str, int]
    left_blocks: Mapping[str, int]
    missed_blocks: int
    refused_blocks: int
    tenant_blocks: Mapping[str, int] = field(default_factory=dict)
    health: Health = Health()

    @property
    def is_configured(self) -> bool:
        return self.block_bytes > 0

    def check(self) -> None:
        there = sum(self.entered_blocks.values()) - sum(self.left_blocks.values())
        assert there == self.resident_blocks, f"{there} blocks came and stayed, {self.resident_blocks} are there"
        assert sum(self.tenant_blocks.values()) == there, "tenants have other blocks than are there"


def absent(tier: Tier) -> TierStats:
    """Of a tier that is not configured."""
    return TierStats(
        *(0,) * 11,
        evicted_blocks=dict.fromkeys(EVICTION_REASONS, 0),
        errors=dict.fromkeys(OPERATIONS, 0),
        load_seconds=LoadSeconds(),
        store_seconds=0.0,
        entered_blocks=dict.fromkeys(map(str, origins_of(tier)), 0),
        left_blocks=dict.fromkeys(map(str, ways_out_of(tier)), 0),
        missed_blocks=0,
        refused_blocks=0,
    )


@dataclass(frozen=True)
class CacheStats:
    """All tiers, also those that are not configured, with zeros."""

    tiers: Mapping[Tier, TierStats]

    def __getitem__(self, tier: Tier) -> TierStats:
        return self.tiers[tier]
