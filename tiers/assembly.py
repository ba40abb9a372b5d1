"""Builds a cache's parts from its configuration and finds what the disk tier kept. Knows nothing about requests."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tiers.ascent import Ascent
from tiers.block_format import stored_bytes
from tiers.books.books import Books
from tiers.config import CacheConfig, SlabSpec, TierConfig
from tiers.disk import DiskStore
from tiers.follower import Follower, Nobody
from tiers.gpu import Gpu
from tiers.host import Host
from tiers.ladder import Ladder
from tiers.level import Level
from tiers.movers import Movers
from tiers.names import Tier
from tiers.node import ensure, oldest_first
from tiers.pool import BlockPool
from tiers.remote import RemoteStore
from tiers.remote_movers import Absent, RemoteMovers
from tiers.shared_level import SharedLevel
from tiers.transfers import Transfers


@dataclass(frozen=True)
class Parts:
    """What a cache consists of; `levels` are gpu and the slower tiers that are configured."""

    config: CacheConfig
    levels: list[Level]
    books: Books
    gpu: Gpu
    host: Host
    disk: DiskStore | None
    remote: RemoteStore | None
    transfers: Transfers
    ladder: Ladder
    ascent: Ascent
    follower: Follower | Nobody

    def level(self, tier: Tier) -> Level | None:
        return next((level for level in self.levels if level.tier is tier), None)


def assemble(
    config: CacheConfig,
    pool: BlockPool,
    ring: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> Parts:
    """All parts, the disk tier's blocks from before among them. RefusedError: another has its folder.

    What a remote tier holds is found later: a server that does not answer keeps nothing from starting.
    """
    disk, remote = _disk(config), _remote(config, clock)
    books = Books(len(config.tiers))
    levels = [_level(books, rank, tier, config.slab) for rank, tier in enumerate(config.tiers)]
    gpu = Gpu(levels[0], pool)
    gpu.resize(levels[0].capacity_bytes)
    cpu_blocks = next((level.capacity_blocks for level in levels if level.tier is Tier.CPU), 0)
    host = Host(config.slab, cpu_blocks, levels[0].capacity_blocks)
    transfers = Transfers(config.num_transfer_threads, ring, has_files=disk is not None, has_server=remote is not None)
    server = RemoteMovers(remote, pool, host, transfers) if remote else Absent()
    movers = Movers(pool, host, disk, transfers, server, config.slab.num_bytes)
    ladder = Ladder(levels, books, gpu, host, movers)
    ascent = Ascent(books, ladder, host, movers)
    follower = _follower(levels[-1], books, ladder, server, clock)
    parts = Parts(config, levels, books, gpu, host, disk, remote, transfers, ladder, ascent, follower)
    _restore(parts)
    return parts


def _level(books: Books, rank: int, tier: TierConfig, slab: SlabSpec) -> Level:
    block_bytes = stored_bytes(slab, tier.compression) if tier.tier in (Tier.DISK, Tier.REMOTE) else slab.num_bytes
    kind = SharedLevel if tier.tier is Tier.REMOTE else Level
    return kind(books, rank, tier, block_bytes)


def _follower(
    slowest: Level, books: Books, ladder: Ladder, server: RemoteMovers | Absent, clock: Callable[[], float]
) -> Follower | Nobody:
    if isinstance(slowest, SharedLevel) and isinstance(server, RemoteMovers):
        return Follower(slowest, books, ladder, server, clock)
    return Nobody()


def _disk(config: CacheConfig) -> DiskStore | None:
    for tier in config.tiers:
        if tier.tier is Tier.DISK and tier.path is not None:
            disk = DiskStore(tier.path, config.slab, config.block_size, config.fingerprint, tier.compression)
            disk.lock()
            return disk
    return None


def _remote(config: CacheConfig, clock: Callable[[], float]) -> RemoteStore | None:
    for tier in config.tiers:
        if tier.tier is Tier.REMOTE and tier.url is not None:
            return RemoteStore(
                tier.url,
                config.slab,
                config.block_size,
                config.fingerprint,
                tier.compression,
                ttl_seconds=tier.ttl_seconds,
                timeout_seconds=tier.timeout_seconds,
                clock=clock,
            )
    return None


def _restore(parts: Parts) -> None:
    """Blocks whose parents are gone stay: they are found again once those are computed."""
    level = parts.level(Tier.DISK)
    if parts.disk is None or level is None:
        return
    nodes = []
    for header in parts.disk.scan():
        nodes.append(ensure(parts.books, header.key, header.parent_key, header.position))
        parts.books.give_to(nodes[-1].row, header.tenant)
        level.add(nodes[-1], Tier.DISK).validate()
    for node in oldest_first(nodes[::-1]):
        parts.ladder.touch(node)
    parts.ladder.rebalance()
    parts.ladder.submit()
