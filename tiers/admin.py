"""What an administrator may do to a cache between two steps: sizes, modes, clearing, a clean stop, figures.

Knows nothing about leases but that their blocks are not to be touched.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from tiers.assembly import Parts
from tiers.bounds import Bounds
from tiers.config import TierChanges
from tiers.disk import DiskStore
from tiers.errors import RefusedError
from tiers.level import Level
from tiers.limits import MachineLimits
from tiers.names import TIERS, Tier
from tiers.remote import RemoteStore
from tiers.senddown import send_down
from tiers.sizes import in_words
from tiers.stats import CacheStats, Health, absent
from tiers.writedown import write_down

POLL_SECONDS = 0.002


class Admin:
    """Acts on the parts of one cache."""

    def __init__(
        self, parts: Parts, limits: MachineLimits, clock: Callable[[], float], poll: Callable[[], bool]
    ) -> None:
        self._parts = parts
        self.bounds = Bounds(parts, limits)
        self._clock = clock
        self._poll = poll
        self._is_closed = False
        for level in parts.levels:
            # A disk or server that others have filled must not keep the engine from starting.
            if level.tier in (Tier.GPU, Tier.CPU):
                self.bounds.check(level, level.capacity_bytes)

    # -- sizes -------------------------------------------------------------------------------------------------------
    def resize(self, tier: Tier, capacity_bytes: int) -> None:
        level = self._level(tier)
        if capacity_bytes < 0:
            raise RefusedError(f"The {tier} tier cannot have {in_words(capacity_bytes)}; expected 0 or more.")
        if capacity_bytes > level.capacity_bytes:
            self.bounds.check(level, capacity_bytes)
        if level.rank == 0:
            self._resize_gpu(level, capacity_bytes)
        else:
            level.is_shrinking = capacity_bytes < level.capacity_bytes
            level.resize(capacity_bytes)
        if tier is Tier.CPU:
            self._parts.host.resize(level.capacity_blocks)
        self._parts.ladder.rebalance()
        self._parts.ladder.submit()

    def _resize_gpu(self, level: Level, capacity_bytes: int) -> None:
        if capacity_bytes < level.block_bytes:
            raise RefusedError(
                f"The gpu tier cannot have {in_words(capacity_bytes)}; attention needs at least one block, "
                f"{in_words(level.block_bytes)}."
            )
        self._parts.gpu.resize(capacity_bytes)
        self.continue_gpu_resize()

    def continue_gpu_resize(self) -> bool:
        """Evict what a smaller gpu tier has no room for, as far as nobody reads it; True if that is over now."""
        gpu = self._parts.gpu
        if not gpu.level.is_shrinking:
            return False
        while gpu.is_over and (oldest := gpu.level.eviction.victim()):
            self._parts.ladder.evict(oldest, gpu.level.reason)
        self._parts.ladder.rebalance()
        return gpu.shrink()

    # -- modes and contents ------------------------------------------------------------------------------------------
    def configure(self, tier: Tier, changes: TierChanges) -> None:
        self._level(tier).configure(changes)
        self._parts.ladder.rebalance()
        self._parts.ladder.submit()

    def clear(self, tier: Tier) -> int:
        level = self._level(tier)
        copies = level.eviction.oldest_first()
        for copy in copies:
            level.evicted["clear"] += 1
            self._parts.ladder.drop(copy)
        self._parts.ladder.submit()
        return len(copies)

    def _level(self, tier: Tier) -> Level:
        level = self._parts.level(tier)
        if level is None:
            raise RefusedError(f"This engine has no {tier} tier; its tiers are set when it starts.")
        return level

    # -- stopping ----------------------------------------------------------------------------------------------------
    def flush(self, deadline: float) -> None:
        while self._parts.transfers.num_pending and self._clock() < deadline:
            if not self._poll():
                time.sleep(POLL_SECONDS)
        if self._parts.transfers.num_pending:
            return
        disk, level = self._parts.disk, self._parts.level(Tier.DISK)
        if disk is not None and level is not None:
            write_down(self._parts, disk, level, lambda: self._clock() < deadline)
        remote, level = self._parts.remote, self._parts.level(Tier.REMOTE)
        if remote is not None and level is not None:
            send_down(self._parts, remote, level, lambda: self._clock() < deadline)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._parts.remote is not None:
            self._parts.remote.close()
        self._parts.transfers.close()
        self._parts.transfers.apply()
        if self._parts.disk is not None:
            self._keep_order(self._parts.disk)
            self._parts.disk.unlock()

    def _keep_order(self, disk: DiskStore) -> None:
        """All known blocks by recency, gpu's as the newest: files of those that are on disk get times in this order."""
        levels = [level for level in reversed(self._parts.levels) if not level.is_shared]
        keys = [copy.node.key for level in levels for copy in level.eviction.oldest_first()]
        disk.set_order(list(dict.fromkeys(reversed(keys)))[::-1], time.time_ns())

    # -- figures -----------------------------------------------------------------------------------------------------
    def stats(self) -> CacheStats:
        tiers = {tier: absent(tier) for tier in TIERS}
        for level in self._parts.levels:
            used = level.num_blocks if level.rank else self._parts.gpu.slots.num_in_use
            tiers[level.tier] = level.stats(self._parts.config.block_size, used)
        if self._parts.remote is not None:
            tiers[Tier.REMOTE] = replace(tiers[Tier.REMOTE], health=self._health(self._parts.remote))
        return CacheStats(tiers)

    def _health(self, remote: RemoteStore) -> Health:
        breaker, follower = remote.breaker, self._parts.follower
        warning = follower.room.warning if follower.room is not None else ""
        return Health(breaker.state, breaker.num_opened, breaker.last_error, warning, follower.is_known)
