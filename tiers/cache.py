"""The tiered prefix cache: leases for requests on one side, sizes and clears for admins on the other.

Bookkeeping is integers and runs on one thread (the engine's stepping thread); bytes are moved by transfer threads and
their outcomes are applied by `poll()`. Knows nothing about tokens beyond `block_size`, or about models.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tiers.config import CacheConfig, CapacityError, RefusedError
from tiers.disk import DiskStore, file_bytes
from tiers.index import Copy
from tiers.keys import BlockKey
from tiers.lease import Lease, LeaseState
from tiers.level import Level
from tiers.limits import MachineLimits
from tiers.mover import GPU, Mover
from tiers.names import Policy, Tier, WriteMode
from tiers.pool import BlockPool
from tiers.stats import CacheStats, TierStats
from tiers.stores import CpuStore, Store

_FLUSH_NAP_SECONDS = 0.002


@dataclass(slots=True)
class _Claim:
    """Hits that wait for slots in gpu. They are pinned, so that making room does not push them out.

    `arriving` are the gpu copies that somebody else's loads are filling for some of them; they are pinned, too.
    """

    copies: list[Copy]
    arriving: list[Copy]
    is_fresh: bool = True

    @property
    def pinned_in_gpu(self) -> list[Copy]:
        return [*(copy for copy in self.copies if copy.level == GPU), *self.arriving]


class TieredCache:
    """Blocks in up to four tiers. All methods are for the stepping thread; `check()` after any of them holds."""

    def __init__(
        self,
        config: CacheConfig,
        gpu: BlockPool,
        *,
        memory: MachineLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self._clock = clock
        self._limits = memory.with_disk(next((x.path for x in config.tiers if x.tier is Tier.DISK), None))
        self._levels = [self._level(index) for index in range(len(config.tiers))]
        self._by_tier = {level.tier: level for level in self._levels}
        self._stores = {level.index: self._store(level) for level in self._levels[1:]}
        self._mover = Mover(self._levels, gpu, self._stores)
        self._mover.on_loaded = self._on_loaded
        self._leases: set[Lease] = set()
        self._claim: _Claim | None = None
        self._find_on_disk()

    # -- reading -----------------------------------------------------------------------------------------------------
    def match(self, keys: Sequence[BlockKey]) -> list[Tier]:
        """The tier of each block of the longest resident prefix. Changes nothing."""
        return [self._levels[copy.level].tier for copy in self._match(keys)]

    @property
    def num_obtainable(self) -> int:
        """Slots in gpu that leases could still get: all that no lease holds, also what is on its way out."""
        gpu = self._mover.gpu
        held = self._mover.num_gpu_used - gpu.num_unpinned - gpu.num_leaving
        claimed = sum(copy.num_pins == 1 for copy in self._claim.pinned_in_gpu) if self._claim else 0
        return gpu.capacity_blocks - held + claimed

    @property
    def num_transfers(self) -> int:
        """Copies under way."""
        return self._mover.transfers.num_under_way

    @property
    def on_transfer_done(self) -> Callable[[], None]:
        """Called from a transfer thread each time a copy has ended, so that the loop can sleep until then."""
        return self._mover.transfers.on_done

    @on_transfer_done.setter
    def on_transfer_done(self, hook: Callable[[], None]) -> None:
        self._mover.transfers.on_done = hook

    # -- a request's life --------------------------------------------------------------------------------------------
    def acquire(self, keys: Sequence[BlockKey], num_blocks: int, origins: dict[BlockKey, Tier]) -> Lease | None:
        """A lease on `num_blocks` blocks whose first ones are the longest resident prefix of `keys`.

        None: slots are being freed, call again after a `poll()`. `origins` is the request's memory of where it first
        found each block. Raises CapacityError if the gpu tier is too small for the request.
        """
        self._drop_claim()
        capacity = self._mover.gpu.capacity_blocks
        if num_blocks > capacity:
            raise CapacityError(f"{num_blocks} blocks were asked for; the gpu tier has {capacity}.")
        claim = self._claimed(keys, origins)
        in_gpu = sum(copy.node.copies[GPU] is not None for copy in claim.copies)
        if not self._mover.make_room(num_blocks - in_gpu):
            self._claim = claim
            return None
        lease = self._lease(claim, origins)
        self._add_fresh(lease, num_blocks - len(lease.block_ids))
        self._leases.add(lease)
        return lease

    def extend(self, lease: Lease, num_blocks: int = 1) -> bool:
        """More fresh blocks. False: not yet, call again after a `poll()`; nothing has been added then."""
        if not self._mover.make_room(num_blocks):
            if self._claim is None:
                return False
            self._drop_claim()  # a running request goes before a waiting one
            if not self._mover.make_room(num_blocks):
                return False
        self._add_fresh(lease, num_blocks)
        return True

    def register(self, lease: Lease, index: int, key: BlockKey, parent: BlockKey) -> None:
        """Block `index` of the lease is full and computed: from now on others can hit it.

        If the same block is cached already, the lease's own stays private and the cached one is kept fresh with it.
        """
        node = self._mover.index.get_or_add(key, parent)
        cached = node.copies[GPU]
        if cached is None:
            copy = self._mover.gpu.add(node, lease.block_ids[index], is_valid=True)
            lease.owns_slot[index] = False
        else:
            copy = cached
        self._pin(copy)
        lease.copies[index] = copy
        if cached is None:
            self._mover.moved_up(node)
            self._mover.write_through(copy)

    def release(self, lease: Lease) -> None:
        """The request needs its blocks no more. Touched tail to head, so that leaves are older than their parents."""
        self._leases.discard(lease)
        for slot, copy, owns in zip(
            reversed(lease.block_ids), reversed(lease.copies), reversed(lease.owns_slot), strict=True
        ):
            if owns:
                self._mover.give_gpu_slot(slot)
            if copy is not None:
                self._let_go(copy)
        lease.loading.clear()

    def poll(self) -> bool:
        """Apply what transfer threads have finished. True if something changed."""
        has_changed = self._mover.poll()
        if self._claim is not None:
            if not self._claim.is_fresh:
                self._drop_claim()
                return True
            self._claim.is_fresh = False
        return has_changed

    # -- admin -------------------------------------------------------------------------------------------------------
    def max_bytes(self, tier: Tier) -> int:
        """The largest size that `resize` would accept now: what is free and what the tier itself has."""
        level = self._by_tier[tier]
        used = self._used_bytes(level)
        others = 0
        if tier in self._limits.memory_tiers:
            for other in self._levels:
                if other is not level and other.tier in self._limits.memory_tiers:
                    others += other.capacity_bytes - self._used_bytes(other)
        return max(0, self._limits.max_bytes(tier) + used - max(0, others))

    def max_reason(self, tier: Tier) -> str:
        """What `max_bytes` is made of, as a person would say it."""
        return self._limits.why(tier)

    def resize(self, tier: Tier, capacity_bytes: int) -> None:
        """Growing is at once; shrinking evicts in the background. Raises RefusedError and changes nothing."""
        level = self._level_of(tier)
        if capacity_bytes < 0:
            raise RefusedError(f"A tier cannot have {capacity_bytes:,} bytes; 0 is the smallest size.")
        if capacity_bytes > level.capacity_bytes:
            self._refuse_above_limit(level, capacity_bytes)
            self._grow_pool(level, capacity_bytes)
        level.capacity_bytes = capacity_bytes
        self._mover.resized(level)

    def configure(self, tier: Tier, *, write_mode: WriteMode | None = None, policy: Policy | None = None) -> None:
        """From now on; what already lies in the tier stays."""
        level = self._level_of(tier)
        level.write_mode = write_mode or level.write_mode
        level.policy = policy or level.policy

    def clear(self, tier: Tier) -> int:
        """Drop every block of that tier that no request holds; other tiers are untouched. Returns how many."""
        level = self._level_of(tier)
        copies = list(level.unpinned())
        for copy in copies:
            self._mover.drop(copy, "clear")
        return len(copies)

    def flush(self, deadline: float) -> None:
        """Before a stop: write down to disk what lies in memory, newest last, until `deadline` on the cache's clock."""
        self._drop_claim()
        for level in self._levels:
            if level.tier in (Tier.GPU, Tier.CPU) and self._clock() < deadline:
                level.capacity_bytes = 0
        while (self.poll() or self.num_transfers) and self._clock() < deadline:
            time.sleep(_FLUSH_NAP_SECONDS)

    def close(self) -> None:
        """End the transfer threads. The cache is not used afterwards."""
        self._mover.transfers.close()
        self._mover.poll()

    def stats(self) -> CacheStats:
        return CacheStats({level.tier: self._stats(level) for level in self._levels})

    def check(self) -> None:
        """Raises AssertionError with a sentence if any count, list or slot is not what it must be."""
        self._mover.index.check()
        for level in self._levels:
            level.check([copy for node in self._mover.index for copy in [node.copies[level.index]] if copy])
        owned = [slot for x in self._leases for slot, owns in zip(x.block_ids, x.owns_slot, strict=True) if owns]
        detached = {copy.slot for x in self._leases for copy in x.copies if copy and copy.is_detached}
        cached = {copy.slot for node in self._mover.index for copy in [node.copies[GPU]] if copy}
        assert len(owned) == len(set(owned)), "two leases own one slot"
        assert not set(owned) & cached, "a lease owns a cached slot"
        used = cached | set(owned) | detached
        assert len(used) == self._mover.num_gpu_used, "used gpu slots are miscounted"
        self._mover.pool.check(used)
        self._check_pins()
        self._check_order()

    # -- inside ------------------------------------------------------------------------------------------------------
    def _level(self, index: int) -> Level:
        config, slab = self.config.tiers[index], self.config.slab
        block_bytes = file_bytes(slab) if config.tier is Tier.DISK else slab.num_bytes
        return Level(index, config.tier, block_bytes, config.capacity_bytes, config.write_mode)

    def _store(self, level: Level) -> Store:
        config = self.config.tiers[level.index]
        match config.tier:
            case Tier.CPU:
                return CpuStore(self.config.slab)
            case Tier.DISK if config.path is not None:
                return DiskStore(config.path, self.config.slab, self.config.fingerprint)
            case Tier.DISK:
                raise ValueError("The disk tier needs a folder: set its path.")
        raise ValueError(f"There is no store for a {config.tier} tier.")

    def _find_on_disk(self) -> None:
        for level in self._levels[1:]:
            store = self._stores[level.index]
            if isinstance(store, DiskStore):
                for found in store.scan():
                    level.add(self._mover.index.get_or_add(found.key, found.parent_key), store.take(), is_valid=True)
                self._mover.resized(level)

    def _match(self, keys: Sequence[BlockKey]) -> list[Copy]:
        copies = []
        for key in keys:
            node = self._mover.index.get(key)
            copy = node.fastest() if node else None
            if copy is None:
                break
            copies.append(copy)
        return copies

    def _claimed(self, keys: Sequence[BlockKey], origins: dict[BlockKey, Tier]) -> _Claim:
        claim = _Claim(self._match(keys), [])
        for copy in claim.copies:
            level = self._levels[copy.level]
            origins.setdefault(copy.node.key, level.tier)
            self._pin(copy)
            if copy.level == GPU:
                continue
            if level.write_mode is WriteMode.WRITE_BACK:
                # The place of a block that moves up is free for the one that it pushes down.
                level.uncharge(copy)
            arriving = copy.node.copies[GPU]
            if arriving is not None:
                self._pin(arriving)
                claim.arriving.append(arriving)
        return claim

    def _drop_claim(self) -> None:
        claim, self._claim = self._claim, None
        if claim is None:
            return
        for copy in reversed(claim.arriving):
            self._let_go(copy)
        for copy in reversed(claim.copies):
            if copy.level != GPU and copy.num_pins == 1 and not copy.is_leaving:
                self._levels[copy.level].charge(copy)
            self._let_go(copy)

    def _lease(self, claim: _Claim, origins: dict[BlockKey, Tier]) -> Lease:
        """The claim's pins become the lease's; those on slower copies the loads' (or go, if others load them)."""
        lease = Lease()
        for copy in claim.copies:
            lease.hit_tiers.append(origins[copy.node.key])
            in_gpu = copy.node.copies[GPU]
            if in_gpu is None:
                in_gpu = self._mover.load(copy)
                self._mover.gpu.pin(in_gpu)
            elif copy.level != GPU:
                self._let_go(copy)
            lease.add(in_gpu.slot, in_gpu)
            if in_gpu.is_arriving:
                lease.wait_for(in_gpu)
        return lease

    def _add_fresh(self, lease: Lease, num_blocks: int) -> None:
        for _ in range(num_blocks):
            lease.add(self._mover.take_gpu_slot(), None)

    def _pin(self, copy: Copy) -> None:
        level = self._levels[copy.level]
        if copy.is_leaving and copy.level == GPU:
            level.rescue(copy)
        level.pin(copy)

    def _let_go(self, copy: Copy) -> None:
        if copy.is_detached:
            copy.num_pins -= 1
            if not copy.num_pins:
                self._mover.give_gpu_slot(copy.slot)
            return
        self._levels[copy.level].unpin(copy)
        if copy.level == GPU:
            for below in copy.node.copies[1:]:
                if below is not None:
                    self._levels[below.level].touch(below)
        self._mover.leave_if_idle(copy)

    def _on_loaded(self, copy: Copy, is_whole: bool) -> None:
        for lease in self._leases:
            if copy in lease.loading:
                lease.arrived(copy) if is_whole else lease.failed()

    def _level_of(self, tier: Tier) -> Level:
        if tier not in self._by_tier:
            raise RefusedError(f"This engine has no {tier} tier.")
        return self._by_tier[tier]

    def _used_bytes(self, level: Level) -> int:
        num_blocks = self._mover.num_gpu_used if level.index == GPU else level.num_resident
        return num_blocks * level.block_bytes

    def _refuse_above_limit(self, level: Level, capacity_bytes: int) -> None:
        limit = self.max_bytes(level.tier)
        if capacity_bytes > limit:
            raise RefusedError(
                f"The {level.tier} tier cannot have {capacity_bytes:,} bytes: {limit:,} bytes is the most there is "
                f"({self._limits.why(level.tier)})."
            )

    def _grow_pool(self, level: Level, capacity_bytes: int) -> None:
        owner = self._mover.pool if level.index == GPU else self._stores[level.index]
        try:
            owner.resize(capacity_bytes // level.block_bytes)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise RefusedError(f"The {level.tier} tier could not get {capacity_bytes:,} bytes: {error}") from error

    def _stats(self, level: Level) -> TierStats:
        counters, is_gpu = level.counters, level.index == GPU
        held = self._mover.num_gpu_used - level.num_unpinned - level.num_leaving
        return TierStats(
            capacity_bytes=level.capacity_bytes,
            capacity_blocks=level.capacity_blocks,
            block_bytes=level.block_bytes,
            used_bytes=self._used_bytes(level),
            resident_blocks=level.num_resident,
            resident_tokens=level.num_resident * self.config.block_size,
            pinned_blocks=held if is_gpu else level.num_pinned,
            stored_blocks=counters.stored_blocks,
            stored_bytes=counters.stored_blocks * self.config.slab.num_bytes,
            loaded_blocks=counters.loaded_blocks,
            loaded_bytes=counters.loaded_blocks * self.config.slab.num_bytes,
            evicted_blocks=dict(counters.evicted),
            errors=dict(counters.errors),
            load_seconds=counters.load_seconds,
        )

    def _check_pins(self) -> None:
        expected: dict[Copy, int] = {}
        for lease in self._leases:
            for copy in lease.copies:
                if copy is not None:
                    expected[copy] = expected.get(copy, 0) + 1
        for copy in self._claim.pinned_in_gpu if self._claim else []:
            expected[copy] = expected.get(copy, 0) + 1
        for node in self._mover.index:
            copy = node.copies[GPU]
            if copy is not None:
                assert copy.num_pins == expected.get(copy, 0), "a gpu block has another number of pins than holders"

    def _check_order(self) -> None:
        for lease in self._leases:
            assert len(lease.block_ids) == len(lease.copies) == len(lease.owns_slot), "a lease is out of step"
            assert (lease.state is LeaseState.LOADING) <= bool(lease.loading), "a lease waits for nothing"
