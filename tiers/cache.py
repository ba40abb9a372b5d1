"""The tiered prefix cache: which blocks are where, who reads them, and what moves next. One thread calls it.

Knows nothing about tokens, models or schedulers. A request's life: `match`, `acquire`, `register` as blocks fill,
`extend` as it grows, `release`. Bytes move on transfer threads; `poll` applies what they have done.
"""

import time
from collections.abc import Callable, Sequence
from typing import Unpack

from tiers.admin import Admin
from tiers.assembly import Parts, assemble
from tiers.audit import audit
from tiers.config import CacheConfig, TierChanges
from tiers.errors import CapacityError
from tiers.keys import KEY_BYTES, BlockKey, chain_keys
from tiers.lease import Lease
from tiers.limits import MachineLimits
from tiers.names import Tier
from tiers.node import Copy, Node
from tiers.pool import BlockPool
from tiers.stats import CacheStats
from tiers.worth import PrefillSeconds, Worth, never_measured


class TieredCache:
    """Blocks by key in gpu, cpu, disk and remote. Raises RefusedError if the machine cannot give the sizes.

    `on_transfer_done` is called, by any thread, when `poll` has something to apply. `prefill_seconds(position,
    num_tokens)` estimates what computing prompt tokens takes, for tiers that are read only where that is cheaper.
    """

    def __init__(
        self,
        config: CacheConfig,
        gpu: BlockPool,
        *,
        clock: Callable[[], float] = time.monotonic,
        memory: MachineLimits,
        on_transfer_done: Callable[[], None] = lambda: None,
    ) -> None:
        chain_keys(bytes(KEY_BYTES), [0], 1)  # compiles, or loads what is compiled, before anybody waits
        self.config = config
        self.on_transfer_done = on_transfer_done
        self.prefill_seconds: PrefillSeconds = never_measured
        self._parts: Parts = assemble(config, gpu, lambda: self.on_transfer_done(), clock)
        self._gpu = self._parts.gpu
        self._ladder = self._parts.ladder
        self._index = self._parts.index
        self._leases: set[Lease] = set()
        self._worth = Worth(self._parts.levels, config.block_size, lambda *chunk: self.prefill_seconds(*chunk))
        self._admin = Admin(self._parts, memory, clock, self.poll)

    # -- reading -----------------------------------------------------------------------------------------------------
    def match(self, keys: Sequence[BlockKey]) -> list[Tier]:
        """For each block of the longest resident prefix, the fastest tier that validly has it. Changes nothing."""
        return [_tier_of(node) for node in self._index.resident_prefix(keys)]

    @property
    def num_obtainable(self) -> int:
        """Gpu slots that leases could still get, perhaps after evictions: everything that no lease holds."""
        return self._gpu.num_obtainable

    @property
    def num_transfers(self) -> int:
        """Operations under way, or done and not applied by `poll` yet."""
        return self._parts.transfers.num_pending

    @property
    def num_orphans(self) -> int:
        """Resident blocks that no prompt can reach until their parents are computed again. Walks everything."""
        return self._index.num_orphans()

    # -- a request's life --------------------------------------------------------------------------------------------
    def acquire(self, keys: Sequence[BlockKey], num_blocks: int, origins: dict[BlockKey, Tier]) -> Lease | None:
        """Take `num_blocks` gpu slots, the first ones with the resident prefix of `keys`, and start loads into them.

        None: others hold too much now; nothing is held, try again after a later `poll`. `origins` is the request's
        memory of where it first met each block; it is read and added to. Raises CapacityError if it can never fit.
        """
        if num_blocks > self._gpu.level.capacity_blocks:
            raise CapacityError(
                f"{num_blocks:,} blocks are needed and the gpu tier holds {self._gpu.level.capacity_blocks:,}"
            )
        found = self._index.resident_prefix(keys[:num_blocks])
        num_read = self._worth.num_worth(found)
        hits, skipped = found[:num_read], found[num_read:]
        if not self._can_take(hits, num_blocks):
            return None
        lease = Lease(origins)
        _count_hits(hits, origins)
        lease.hit_tiers = [origins.setdefault(node.key, _tier_of(node)) for node in hits]
        lease.skipped_tiers = [_tier_of(node) for node in skipped]
        self._worth.leave_out(skipped)
        self._take(lease, hits, keys, num_blocks)
        self._leases.add(lease)
        self._ladder.store_hits(lease.copies[: len(hits)])
        self._ladder.rebalance()
        self._ladder.submit()
        return lease

    def extend(self, lease: Lease, num_blocks: int = 1) -> bool:
        """More blocks at the lease's end. False: not yet; evictions were started if they can help."""
        missing = num_blocks - self._free_after_evictions(num_blocks)
        if missing > 0:
            return False
        for _ in range(num_blocks):
            lease.block_ids.append(self._take_free())
            lease.copies.append(None)
        return True

    def register(self, lease: Lease, index: int, key: BlockKey, parent: BlockKey) -> None:
        """The lease's block at `index` is full and computed: from now on others may find it.

        `parent` is the key of the block before it, or the chain's root. If another request was faster, the lease
        keeps its own slot and reads along with that one's copy.
        """
        if lease.copies[index] is not None:
            raise ValueError(f"Block {index} of the lease is cached already.")
        node = self._index.ensure(key, parent, index)
        copy = self._gpu.level.of(node)
        if copy is None:
            copy = self._adopt(node, lease.block_ids[index])
            self._pin(copy)
            if self._ladder.store_through(copy):
                self._ladder.rebalance()
            self._ladder.submit()
        else:
            self._pin(copy)
        lease.copies[index] = copy

    def release(self, lease: Lease) -> None:
        """Give everything back; legal in every state. What was registered stays cached, its tail as the oldest."""
        if lease.is_released:
            raise ValueError("The lease was released already.")
        lease.is_released = True
        self._leases.remove(lease)
        for slot, copy in zip(reversed(lease.block_ids), reversed(lease.copies), strict=True):
            if copy is None or copy.slot != slot:
                self._gpu.give_private(slot)
            if copy is not None:
                self._unpin(copy)
        self._ladder.rebalance()
        self._ladder.submit()

    def poll(self) -> bool:
        """Apply finished copies, go on with evictions and resizes that are under way; True if something changed."""
        has_changed = self._parts.transfers.apply()
        self._ladder.touch_late()
        has_changed |= self._parts.follower.work()
        self._ladder.rebalance()
        has_changed |= self._admin.continue_gpu_resize()
        self._ladder.submit()
        return has_changed

    # -- admin, between steps ----------------------------------------------------------------------------------------
    def max_bytes(self, tier: Tier) -> int:
        """The largest size that `resize` would accept now."""
        return self._admin.bounds.max_bytes(tier)

    def max_reason(self, tier: Tier) -> str:
        """What bounds `max_bytes`, as the end of a sentence."""
        return self._admin.bounds.reason(tier)

    def resize(self, tier: Tier, capacity_bytes: int) -> None:
        """Takes effect at once; what no longer fits leaves in the background, what leases hold as they end.

        Raises RefusedError, and keeps the old size, if the machine or the tier cannot have it.
        """
        self._admin.resize(tier, capacity_bytes)

    def configure(self, tier: Tier, **changes: Unpack[TierChanges]) -> None:
        """From now on. Raises RefusedError if there is no such tier, and ValueError for a number below 1."""
        self._admin.configure(tier, changes)

    def clear(self, tier: Tier) -> int:
        """Drop every block of that tier that nobody reads; returns how many. Other tiers keep theirs."""
        return self._admin.clear(tier)

    def flush(self, deadline: float) -> None:
        """For a clean stop, when no lease is held: store what gpu and cpu hold on disk and in remote, by `deadline`."""
        self._admin.flush(deadline)

    def close(self) -> None:
        """End the transfer threads. What has not begun is dropped; the disk tier keeps what was written whole."""
        self._admin.close()

    def stats(self) -> CacheStats:
        return self._admin.stats()

    def check(self) -> None:
        """Raises AssertionError with a sentence if any books disagree."""
        audit(self._parts, self._leases)

    # -- details -----------------------------------------------------------------------------------------------------
    def _can_take(self, hits: list[Node], num_blocks: int) -> bool:
        """A block that nobody reads counts as obtainable, unless it is one of the hits."""
        in_gpu = [copy for node in hits if (copy := self._gpu.level.of(node)) is not None]
        num_idle = sum(copy in self._gpu.level.eviction for copy in in_gpu)
        num_needed = num_blocks - len(in_gpu)
        if num_needed > self._gpu.num_obtainable - num_idle:
            return False
        if not self._gpu.level.is_shrinking:
            return True
        # A slot beyond the limit cannot be promised: wait until enough below it are free.
        return self._free_after_evictions(num_needed, keep=hits) >= num_needed

    def _take(self, lease: Lease, hits: list[Node], keys: Sequence[BlockKey], num_blocks: int) -> None:
        promotions: list[tuple[int, Copy, Copy]] = []
        for index, node in enumerate(hits):
            copy = self._gpu.level.of(node)
            if copy is None:
                copy, source = self._ladder.begin_promotion(node)
                promotions.append((index, copy, source))
            self._pin(copy)
            lease.copies.append(copy)
            lease.block_ids.append(copy.slot)
            if copy.waiters is not None:
                copy.waiters.append(lease)
                lease.num_pending += 1
        for index, copy, source in promotions:
            slot = lease.block_ids[index] = self._obtain(lease, copy.node.key)
            self._ladder.promote(copy, source, slot)
        for index in range(len(hits), num_blocks):
            lease.block_ids.append(self._obtain(lease, keys[index] if index < len(keys) else b""))
            lease.copies.append(None)

    def _obtain(self, lease: Lease, key: BlockKey) -> int:
        """A slot for the lease's block with that key: a free one, the oldest block's, or one that is draining."""
        slot = self._gpu.slots.take()
        while slot is None and (oldest := self._gpu.level.eviction.victim(key)):
            self._ladder.evict(oldest, self._gpu.level.reason)
            slot = self._gpu.slots.take()
            if slot is None and oldest.slot in self._gpu.draining:
                return self._gpu.promise(oldest.slot, lease)
        return self._gpu.promise(next(iter(self._gpu.draining)), lease) if slot is None else slot

    def _take_free(self) -> int:
        slot = self._gpu.slots.take()
        assert slot is not None
        return slot

    def _free_after_evictions(self, wanted: int, keep: Sequence[Node] = ()) -> int:
        """Free slots now; if they are fewer than wanted, evictions are started (of `keep` only as the last)."""
        gpu = self._gpu
        for node in reversed(keep):
            if (copy := gpu.level.of(node)) is not None and copy in gpu.level.eviction:
                gpu.level.eviction.touch(copy)
        if wanted <= gpu.num_obtainable:
            while gpu.slots.num_free + len(gpu.draining) < wanted and (oldest := gpu.level.eviction.victim()):
                self._ladder.evict(oldest, gpu.level.reason)
            self._ladder.rebalance()
            self._ladder.submit()
        return gpu.slots.num_free

    def _adopt(self, node: Node, slot: int) -> Copy:
        """A computed block becomes the gpu copy; exclusive tiers below give theirs up."""
        copy = self._gpu.level.add(node, Tier.GPU)
        for level in self._ladder.levels:
            if node.key in level.dropped.new or node.key in level.dropped.old:
                level.computed_again(node.key)
        copy.slot = slot
        copy.is_valid = True
        for other in node.live_copies()[1:]:
            if not other.level.keeps_hits:
                self._ladder.drop(other)
        return copy

    def _pin(self, copy: Copy) -> None:
        """None of the block's copies may leave while a lease reads it, so that what is below it stays older."""
        if not copy.pins:
            for each in copy.node.copies:
                if each is not None:
                    each.level.eviction.hold(each)
        copy.pins += 1

    def _unpin(self, copy: Copy) -> None:
        copy.pins -= 1
        if copy.pins:
            return
        if not copy.is_live:
            self._ladder.settle(copy)
        if not copy.node.is_pinned:  # also where this copy is lost: slower tiers may have the block
            self._ladder.touch(copy.node)


def _count_hits(nodes: Sequence[Node], origins: dict[BlockKey, Tier]) -> None:
    """A request that is admitted again hits nothing again."""
    for node in nodes:
        if not origins or node.key not in origins:
            node.num_hits += 1


def _tier_of(node: Node) -> Tier:
    copy = node.fastest
    assert copy is not None
    return copy.tier
