"""What a cache is built with: the shape of a block and the tiers' sizes. Frozen; knows nothing about live state."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from tiers.names import TIERS, Compression, LoadChoice, Policy, Tier, WriteMode
from tiers.sizes import in_words

STORE_AFTER_HITS = 2


@dataclass(frozen=True)
class SlabSpec:
    """One block's keys and values: `num_bytes` contiguous bytes that hold `shape` elements of `dtype`."""

    num_bytes: int
    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.num_bytes < 1:
            raise ValueError(f"A block has {self.num_bytes} bytes; expected at least 1.")


class TierChanges(TypedDict, total=False):
    """What may change while a tier is full; what is not there stays as it is."""

    write_mode: WriteMode
    policy: Policy
    store_after_hits: int
    load: LoadChoice
    tenant_quota: float


def check_hits(store_after_hits: int) -> None:
    """Raises ValueError."""
    if store_after_hits < 1:
        raise ValueError(f"store_after_hits is {store_after_hits}; expected 1 or more.")


def check_quota(tenant_quota: float) -> None:
    """Raises ValueError."""
    if not 0 < tenant_quota <= 1:
        raise ValueError(f"tenant_quota is {tenant_quota}; expected more than 0 and at most 1.")


@dataclass(frozen=True)
class TierConfig:
    """One tier. A capacity of 0 switches it off; `path` is the folder of the disk tier.

    With write_selective a block is stored at its hit number `store_after_hits`. `compression` is for disk and remote.
    `tenant_quota` is the largest share of the tier's blocks that one tenant may keep there; 1 is all.

    `url` is the server of the remote tier (redis://, rediss:// or unix://; a password in it is never shown): blocks
    stay there for `ttl_seconds` after their last use; what it has not answered after `timeout_seconds` is a miss.
    """

    tier: Tier
    capacity_bytes: int
    write_mode: WriteMode = WriteMode.WRITE_BACK
    policy: Policy = Policy.LRU
    path: Path | None = None
    store_after_hits: int = STORE_AFTER_HITS
    load: LoadChoice = LoadChoice.ALWAYS
    tenant_quota: float = 1.0
    compression: Compression = Compression.NONE
    url: str | None = field(default=None, repr=False)
    ttl_seconds: int = 86_400
    timeout_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.capacity_bytes < 0:
            raise ValueError(f"The {self.tier} tier has {self.capacity_bytes} bytes; expected 0 or more.")
        check_hits(self.store_after_hits)
        check_quota(self.tenant_quota)
        if self.compression is not Compression.NONE and self.tier not in (Tier.DISK, Tier.REMOTE):
            raise ValueError(f"The {self.tier} tier cannot be compressed; disk and remote can.")
        if self.tier is Tier.DISK and self.path is None:
            raise ValueError("The disk tier needs a folder; give its path.")
        if self.tier is Tier.REMOTE and not (self.url or "").startswith(("redis://", "rediss://", "unix://")):
            raise ValueError(
                "The remote tier needs the URL of a Valkey or Redis server: redis://, rediss:// or unix://."
            )
        if self.ttl_seconds < 1 or self.timeout_seconds <= 0:
            raise ValueError(
                f"ttl_seconds is {self.ttl_seconds} and timeout_seconds {self.timeout_seconds}; expected at least 1 "
                "and more than 0."
            )


@dataclass(frozen=True)
class CacheConfig:
    """A cache of blocks of `block_size` tokens. `fingerprint` tells models apart whose blocks must never mix.

    With 0 transfer threads, copies are made inside `poll`: slower, and the same at every run.
    """

    block_size: int
    slab: SlabSpec
    fingerprint: str
    tiers: tuple[TierConfig, ...]
    num_transfer_threads: int = 2

    def __post_init__(self) -> None:
        names = [tier.tier for tier in self.tiers]
        if self.block_size < 1:
            raise ValueError(f"block_size is {self.block_size}; expected at least 1.")
        if names[:1] != [Tier.GPU] or names != [tier for tier in TIERS if tier in names]:
            raise ValueError(
                f"The tiers are {', '.join(names) or 'none'}; expected gpu first, each once, fastest first."
            )
        if self.num_transfer_threads not in (0, 1, 2):
            raise ValueError(f"num_transfer_threads is {self.num_transfer_threads}; expected 0, 1 or 2.")
        if self.tiers[0].capacity_bytes < self.slab.num_bytes:
            raise ValueError(
                f"The gpu tier has {in_words(self.tiers[0].capacity_bytes)}; expected at least one block, "
                f"{in_words(self.slab.num_bytes)}."
            )
