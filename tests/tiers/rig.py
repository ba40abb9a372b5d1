"""A cache over tiny blocks whose content follows from their key, so that a wrong byte anywhere is seen.

Knows nothing about what is tested with it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tiers import (
    BlockKey,
    CacheConfig,
    Lease,
    LeaseState,
    MachineLimits,
    MemoryPool,
    Policy,
    SlabSpec,
    Tier,
    TierConfig,
    TieredCache,
    WriteMode,
    chain_keys,
    movers,
    root_key,
    senddown,
)
from tiers.block_format import stored_bytes
from tiers.remote import RemoteStore
from tiers.remote_reader import Land

BLOCK_SIZE = 4
SLAB = SlabSpec(64, "uint8", (64,))
ROOT = root_key(fingerprint="test", salt="", block_size=BLOCK_SIZE, dtype=SLAB.dtype)
GARBAGE = b"\xee" * SLAB.num_bytes
# Two blocks an operation, so that a prompt takes several of them, some of which begin before all are asked for.
movers.GROUP_BYTES = movers.READ_BYTES = senddown.GROUP_BYTES = 2 * SLAB.num_bytes


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class EndlessMachine(MachineLimits):
    """A machine that can give any size."""

    def max_bytes(self, tier: Tier, *, held_bytes: int = 0, path: Path | None = None) -> int:
        return 1 << 60


def content(key: BlockKey) -> bytes:
    return key * (SLAB.num_bytes // len(key))


Build = Callable[..., "Rig"]


def into(targets: Sequence[bytearray]) -> Land:
    """Where blocks that are read from a server shall be."""
    return lambda portion, fill: fill(slice(None), [memoryview(target) for target in targets[portion]])


def keys_of(words: Sequence[int]) -> list[BlockKey]:
    """Keys of a prompt that has one block for each word."""
    return chain_keys(ROOT, [word for word in words for _ in range(BLOCK_SIZE)], BLOCK_SIZE)


def block_bytes(tier: Tier) -> int:
    return stored_bytes(SLAB) if tier in (Tier.DISK, Tier.REMOTE) else SLAB.num_bytes


def config(
    *, gpu: int, cpu: int = 0, disk: int = 0, remote: int = 0, path: Path | None = None, url: str | None = None,
    mode: WriteMode = WriteMode.WRITE_BACK, num_threads: int = 0, policy: Policy = Policy.LRU,
    fingerprint: str = "test", quota: float = 1,
) -> CacheConfig:  # fmt: skip
    """Sizes in blocks; no disk tier without a path, and no remote one without a URL."""
    sizes = {Tier.GPU: gpu, Tier.CPU: cpu}
    sizes |= ({Tier.DISK: disk} if path else {}) | ({Tier.REMOTE: remote} if url else {})
    tiers = tuple(
        TierConfig(
            tier,
            size * block_bytes(tier),
            mode,
            policy,
            path=path if tier is Tier.DISK else None,
            url=url if tier is Tier.REMOTE else None,
            timeout_seconds=10,
            tenant_quota=quota,
        )
        for tier, size in sizes.items()
    )
    return CacheConfig(BLOCK_SIZE, SLAB, fingerprint, tiers, num_threads)


@dataclass
class Rig:
    """A cache, its gpu pool, and requests on them. Copies are made inside `poll` unless threads are asked for."""

    cache: TieredCache
    pool: MemoryPool
    origins: dict[BlockKey, Tier] = field(default_factory=dict)

    def settle(self) -> None:
        """Until all copies are made and applied."""
        deadline = time.monotonic() + 20
        while self.cache.poll() or self.cache.num_transfers:
            assert time.monotonic() < deadline, "transfers do not end"
        self.cache.check()

    def acquire(self, keys: Sequence[BlockKey], num_blocks: int | None = None, tenant: str = "") -> Lease:
        """With all loads done."""
        lease = self.cache.acquire(keys, num_blocks or len(keys), {}, tenant)
        assert lease is not None, "there are no slots"
        self.settle()
        return lease

    def compute(self, lease: Lease, keys: Sequence[BlockKey], start: int | None = None) -> None:
        """Check what was found, then write and register the rest."""
        num_hits = len(lease.hit_tiers)
        for index, key in enumerate(keys):
            if index < num_hits:
                assert self.pool.read(lease.block_ids[index]) == content(key), "a block has a wrong content"
        first = num_hits if start is None else start
        for index in range(first, len(keys)):
            self.pool.write(lease.block_ids[index], content(keys[index]))
        self.cache.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)

    def request(
        self,
        keys: Sequence[BlockKey],
        num_hittable: int | None = None,
        num_blocks: int | None = None,
        tenant: str = "",
    ) -> list[Tier]:
        """One request from start to end; the tiers of what it found."""
        num_hittable = len(keys) - 1 if num_hittable is None else num_hittable
        lease = self.acquire(keys[:num_hittable], num_blocks or len(keys), tenant)
        assert lease.state is LeaseState.READY
        self.compute(lease, keys)
        self.cache.release(lease)
        self.settle()
        return lease.hit_tiers

    def resident(self) -> dict[Tier, int]:
        """Blocks by tier; remote only where there is one."""
        stats = self.cache.stats()
        tiers = [tier for tier in Tier if tier is not Tier.REMOTE or stats[tier].block_bytes]
        return {tier: stats[tier].resident_blocks for tier in tiers}

    def resize(self, tier: Tier, num_blocks: int) -> None:
        self.cache.resize(tier, num_blocks * block_bytes(tier))


def make_rig(config: CacheConfig, clock: Callable[[], float] = time.monotonic) -> Rig:
    """What its server has, if there is one, is known already."""
    pool = MemoryPool(SLAB, config.tiers[0].capacity_bytes // SLAB.num_bytes)
    rig = Rig(TieredCache(config, pool, clock=clock, memory=EndlessMachine()), pool)
    rig.settle()
    return rig


def look(rig: Rig, clock: Clock) -> None:
    """At the server, as it is done now and then."""
    clock.now += 10
    rig.settle()


def value_name(key: bytes) -> bytes:
    """Of a block that `config` describes, on the server."""
    return RemoteStore("unix:///nowhere", SLAB, 4, "test").prefix + b"b:" + key
