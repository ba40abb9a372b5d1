"""The tiered prefix cache: which blocks are where, who reads them, and what moves next. One thread calls it.

Knows nothing about tokens, models or schedulers. A request's life: `match`, `acquire`, `register` as blocks fill,
`extend` as it grows, `release`. Bytes move on transfer threads; `poll` applies what they have done.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np

from tiers.admin import Admin
from tiers.assembly import Parts, assemble
from tiers.audit import audit, num_orphans
from tiers.books import loads, requests
from tiers.books.compiled import Ints32, Ints64
from tiers.books.layout import NONE
from tiers.books.tenants import NOBODY
from tiers.config import CacheConfig, TierChanges
from tiers.errors import CapacityError
from tiers.keys import BlockKey, packed
from tiers.lease import Lease
from tiers.limits import MachineLimits
from tiers.names import TIERS, Tier
from tiers.node import Copy, nodes
from tiers.pool import BlockPool
from tiers.stats import CacheStats
from tiers.taking import Taking
from tiers.worth import PrefillSeconds, Worth, never_measured

NO_COPY = array("i", [NONE])


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
        self.config = config
        self.on_transfer_done = on_transfer_done
        self.prefill_seconds: PrefillSeconds = never_measured
        self._parts: Parts = assemble(config, gpu, lambda: self.on_transfer_done(), clock)
        self._gpu = self._parts.gpu
        self._ladder = self._parts.ladder
        self._books = self._parts.books
        self._taking = Taking(self._gpu, self._books, self._ladder)
        self._leases: set[Lease] = set()
        self._worth = Worth(self._parts.levels, config.block_size, lambda *chunk: self.prefill_seconds(*chunk))
        self._admin = Admin(self._parts, memory, clock, self.poll)

    # -- reading -----------------------------------------------------------------------------------------------------
    def match(self, keys: Sequence[BlockKey]) -> list[Tier]:
        """For each block of the longest resident prefix, the fastest tier that validly has it. Changes nothing."""
        return self._resident_prefix(packed(keys))[1]

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
        return num_orphans(self._books)

    # -- a request's life --------------------------------------------------------------------------------------------
    def acquire(
        self, keys: Sequence[BlockKey], num_blocks: int, origins: dict[BlockKey, Tier], tenant: str = NOBODY
    ) -> Lease | None:
        """Take `num_blocks` gpu slots, the first ones with the resident prefix of `keys`, and start loads into them.

        None: others hold too much now; nothing is held, try again after a later `poll`. `origins` is the request's
        memory of where it first met each block; it is read and added to. `tenant` is whose share of the tiers it takes:
        at most 32 bytes. Raises CapacityError if it can never fit.
        """
        if num_blocks > self._gpu.level.capacity_blocks:
            raise CapacityError(
                f"{num_blocks:,} blocks are needed and the gpu tier holds {self._gpu.level.capacity_blocks:,}"
            )
        known = packed(keys[:num_blocks])
        found, tiers = self._resident_prefix(known)
        num_read = self._num_worth(found)
        hits = found[:num_read]
        if not self._can_take(hits, num_blocks, tenant):
            return None
        lease = Lease(origins, tenant)
        self._count_hits(hits, keys, origins)
        lease.hit_tiers, lease.skipped_tiers = _with_origins(origins, keys, tiers[:num_read]), tiers[num_read:]
        if num_read < len(found):
            self._worth.leave_out(nodes(self._books, found[num_read : num_read + 1]))
        self._take(lease, hits, keys, known, num_blocks)
        self._leases.add(lease)
        if self._ladder.writes_through:
            self._ladder.store_hits(np.frombuffer(lease.copies, np.int32)[:num_read])
        self._ladder.rebalance()
        self._ladder.submit()
        return lease

    def extend(self, lease: Lease, num_blocks: int = 1) -> bool:
        """More blocks at the lease's end. False: not yet; evictions were started if they can help."""
        missing = num_blocks - self._taking.free_after_evictions(num_blocks, lease.tenant)
        if missing > 0:
            return False
        for _ in range(num_blocks):
            slot = self._gpu.slots.take()
            assert slot is not None
            lease.block_ids.append(slot)
            lease.copies.append(NONE)
        return True

    def register(self, lease: Lease, index: int, keys: Sequence[BlockKey], parent: BlockKey) -> None:
        """The lease's blocks from `index` on, with these keys, are full and computed: others may find them now.

        `parent` is the key of the block before them, or the chain's root. Where another request was faster, the lease
        keeps its own slot and reads along with that one's copy.
        """
        if (np.frombuffer(lease.copies, np.int32)[index : index + len(keys)] != NONE).any():
            raise ValueError(f"Block {index} of the lease is cached already.")
        # Room for a block that goes further down is made before the next one comes.
        portion = 1 if self._ladder.writes_through else len(keys)
        known = packed([parent, *keys])
        done = 0
        while done < len(keys):
            done += self._register(lease, index + done, known[done : done + portion + 1])
        if self._gpu.level.is_beyond:
            self._ladder.rebalance()
        self._ladder.submit()

    def _register(self, lease: Lease, index: int, known: Ints32) -> int:
        """`known` are the parent's key and those of the blocks; returns how many of these are done."""
        num_blocks = len(known) - 1
        self._books.reserve(nodes=num_blocks + 1, copies=num_blocks)
        slots = np.frombuffer(lease.block_ids, np.int64)[index:]
        pinned = np.frombuffer(lease.copies, np.int32)[index:]
        tenant = self._books.tenants.number(lease.tenant)
        done: int = requests.register(*self._books.tables, known[1:], known[0], index, slots, pinned, tenant)
        if len(self._parts.levels) > 1:
            self._registered(Copy(self._books, int(pinned[done - 1])), slots[done - 1])
        return done

    def _registered(self, copy: Copy, slot: int) -> None:
        """Slower tiers are told of a block that is new in gpu, in the slot that its request had for it."""
        if copy.slot != slot:
            return
        for other in copy.node.live_copies()[1:]:  # exclusive tiers below give theirs up
            if not other.level.keeps_hits:
                self._ladder.drop(other)
        if self._ladder.store_through(copy):
            self._ladder.rebalance()

    def release(self, lease: Lease) -> None:
        """Give everything back; legal in every state. What was registered stays cached, its tail as the oldest."""
        if lease.is_released:
            raise ValueError("The lease was released already.")
        lease.is_released = True
        self._leases.remove(lease)
        slots = np.frombuffer(lease.block_ids, np.int64)
        if self._gpu.promised:
            slots = self._without_promised(lease)
        pinned, end = np.frombuffer(lease.copies, np.int32), len(slots)
        while end != NONE:
            end = requests.release(
                *self._books.tables, self._gpu.slots.words, self._gpu.slots.counts, slots, pinned, end
            )
            if end != NONE:
                self._unread(Copy(self._books, int(pinned[end])))
        self._ladder.rebalance()
        self._ladder.submit()

    def poll(self) -> bool:
        """Apply finished copies, go on with evictions and resizes that are under way; True if something changed."""
        has_changed = self._parts.transfers.apply()
        self._parts.ascent.late.touch()
        has_changed |= self._parts.follower.work()
        has_changed |= self._ladder.rebalance()
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
        """From now on. Raises RefusedError if there is no such tier, and ValueError for a number that cannot be."""
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
    def _resident_prefix(self, keys: Ints32) -> tuple[Ints32, list[Tier]]:
        """Nodes of the longest run of blocks, from the first, that lie in some tier, and the fastest for each."""
        rows, tiers = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        num_found = requests.resident_prefix(*self._books.tables, keys, rows, tiers)
        return rows[:num_found], [TIERS[place] for place in tiers[:num_found].tolist()]

    def _num_worth(self, found: Ints32) -> int:
        return len(found) if self._worth.reads_all else self._worth.num_worth(nodes(self._books, found))

    def _count_hits(self, hits: Ints32, keys: Sequence[BlockKey], origins: dict[BlockKey, Tier]) -> None:
        """A request that is admitted again hits nothing again."""
        if origins:
            hits = hits[[key not in origins for key, _ in zip(keys, hits, strict=False)]]
        requests.count_hits(self._books.tables.nodes, hits)

    def _can_take(self, hits: Ints32, num_blocks: int, tenant: str) -> bool:
        """A block that nobody reads counts as obtainable, unless it is one of the hits."""
        num_there, num_idle = requests.num_in_gpu(*self._books.tables, hits)
        num_needed = num_blocks - num_there
        if num_needed > self._gpu.num_obtainable - num_idle:
            return False
        if not self._gpu.level.is_shrinking:
            return True
        # A slot beyond the limit cannot be promised: wait until enough below it are free.
        return self._taking.free_after_evictions(num_needed, tenant, keep=nodes(self._books, hits)) >= num_needed

    def _take(self, lease: Lease, hits: Ints32, keys: Sequence[BlockKey], known: Ints32, num_blocks: int) -> None:
        pinned, slots = np.empty(len(hits), np.int32), np.empty(len(hits), np.int64)
        if num_missing := requests.pin_ready(*self._books.tables, hits, pinned, slots):
            self._load(lease, hits, keys, known, pinned, slots, num_missing)
        lease.copies.frombytes(pinned.tobytes())
        lease.block_ids.frombytes(slots.tobytes())
        lease.block_ids.frombytes(self._taking.take(lease, known[len(hits) :], num_blocks - len(hits)).tobytes())
        lease.copies.extend(NO_COPY * (num_blocks - len(hits)))

    def _load(
        self, lease: Lease, hits: Ints32, keys: Sequence[BlockKey], known: Ints32, pinned: Ints32, slots: Ints64,
        num_missing: int,
    ) -> None:  # fmt: skip
        """Of the hits those that are not in gpu yet: some are on their way, the others begin theirs."""
        self._books.reserve(copies=num_missing, memories=num_missing)
        missing, sources = np.empty((2, num_missing), np.int32)
        num_new = loads.begin(*self._books.tables, hits, pinned, slots, missing, sources)
        lease.num_pending += num_missing
        for index in missing[num_new:].tolist():
            self._books.waiters.setdefault(int(pinned[index]), []).append(lease)
        new = missing[:num_new]
        slots[new] = taken = self._taking.take(lease, known[new], num_new, are_counted=True)
        self._parts.ascent.promote(
            lease, [keys[index] for index in new.tolist()], pinned[new], sources[:num_new], taken
        )

    def _without_promised(self, lease: Lease) -> Ints64:
        """The lease's slots, NONE for its own ones that are still being emptied: those are not free yet."""
        slots = np.array(lease.block_ids, np.int64)
        for slot in lease.private_slots(self._books):
            if slot in self._gpu.promised:
                self._gpu.unpromise(slot)
                slots[slots == slot] = NONE
        return slots

    def _unread(self, copy: Copy) -> None:
        """The last lease that read it has ended, and it had left the tier before; slower tiers may have the block."""
        node = copy.node
        self._ladder.settle(copy)
        if not node.is_pinned:
            self._ladder.touch(node)


def _with_origins(origins: dict[BlockKey, Tier], keys: Sequence[BlockKey], tiers: list[Tier]) -> list[Tier]:
    """Where the request first met each block."""
    if not origins:
        origins.update(zip(keys, tiers, strict=False))
        return tiers
    return [origins.setdefault(key, tier) for key, tier in zip(keys, tiers, strict=False)]
