"""Builds a cache's parts from its configuration and finds what the disk tier kept. Knows nothing about requests."""

from collections.abc import Callable
from dataclasses import dataclass

from tiers.config import CacheConfig, TierConfig
from tiers.disk import DiskStore
from tiers.gpu import Gpu
from tiers.host import Host
from tiers.ladder import Ladder
from tiers.level import Level
from tiers.movers import Movers
from tiers.names import Tier
from tiers.node import Index, oldest_first
from tiers.pool import BlockPool
from tiers.transfers import Transfers


@dataclass(frozen=True)
class Parts:
    """What a cache consists of; `levels` are gpu and the slower tiers that are configured."""

    config: CacheConfig
    levels: list[Level]
    index: Index
    gpu: Gpu
    host: Host
    disk: DiskStore | None
    transfers: Transfers
    ladder: Ladder

    def level(self, tier: Tier) -> Level | None:
        return next((level for level in self.levels if level.tier is tier), None)


def assemble(config: CacheConfig, pool: BlockPool, ring: Callable[[], None]) -> Parts:
    """All parts, the disk tier's blocks from before among them. RefusedError: another has its folder."""
    disk = _disk(config)
    file_bytes = disk.file_bytes if disk else 0
    levels = [_level(rank, tier, config.slab.num_bytes, file_bytes) for rank, tier in enumerate(config.tiers)]
    gpu = Gpu(levels[0], pool)
    gpu.resize(levels[0].capacity_bytes)
    cpu_blocks = next((level.capacity_blocks for level in levels if level.tier is Tier.CPU), 0)
    host = Host(config.slab, cpu_blocks, levels[0].capacity_blocks)
    index = Index(len(levels))
    transfers = Transfers(config.num_transfer_threads, ring)
    ladder = Ladder(levels, index, gpu, host, Movers(pool, host, disk, transfers))
    parts = Parts(config, levels, index, gpu, host, disk, transfers, ladder)
    _restore(parts)
    return parts


def _level(rank: int, tier: TierConfig, slab_bytes: int, file_bytes: int) -> Level:
    block_bytes = file_bytes if tier.tier is Tier.DISK else slab_bytes
    return Level(rank, tier.tier, tier.capacity_bytes, block_bytes, tier.write_mode, tier.policy, tier.store_after_hits)


def _disk(config: CacheConfig) -> DiskStore | None:
    for tier in config.tiers:
        if tier.tier is Tier.DISK and tier.path is not None:
            disk = DiskStore(tier.path, config.slab, config.block_size, config.fingerprint)
            disk.lock()
            return disk
    return None


def _restore(parts: Parts) -> None:
    """Blocks whose parents are gone stay: they are found again once those are computed."""
    level = parts.level(Tier.DISK)
    if parts.disk is None or level is None:
        return
    headers = parts.disk.scan()
    for header in headers:
        node = parts.index.ensure(header.key, header.parent_key, header.position)
        level.add(node, Tier.DISK).is_valid = True
    newest_first = [parts.index.nodes[header.key] for header in reversed(headers)]
    for node in oldest_first(newest_first):
        parts.ladder.touch(node)
    parts.ladder.rebalance()
    parts.ladder.submit()
