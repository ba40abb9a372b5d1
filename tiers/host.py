"""Slots in host memory, counted by reference: the cpu tier's blocks, and blocks on their way through to disk.

Knows nothing about keys or recency. A slot is freed when neither a tier nor a transfer needs it any more.
"""

import heapq
from typing import TYPE_CHECKING

from tiers.config import SlabSpec
from tiers.pool import MemoryPool

if TYPE_CHECKING:
    from tiers.node import Copy

# Blocks that may wait in memory for the disk, beyond what the cpu tier may hold.
STAGING_BYTES = 2 << 30
MIN_STAGING_BLOCKS = 128
# Memory of staging slots that is kept for the next block: touching new pages takes longer than a copy does.
KEPT_BYTES = 32 << 20

NO_SLOT = "too many blocks are on their way through host memory"


class HostSlot:
    """One slab. `waiting` are copies whose store goes on when the slot is filled.

    `has_bytes` is the transfer thread's knowledge, `is_filled` the same when the bookkeeping thread has been told.
    """

    __slots__ = ("has_bytes", "is_filled", "refs", "slot", "waiting")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.refs = 1
        self.is_filled = self.has_bytes = False
        self.waiting: list[Copy] = []


class Host:
    """A pool with slots for `capacity` blocks and a bounded number of staging slots.

    Memory follows what is in use, but for `KEPT_BYTES`.
    """

    def __init__(self, slab: SlabSpec, capacity: int, gpu_blocks: int) -> None:
        self.pool = MemoryPool(slab, 0)
        self.capacity = capacity
        self.num_in_use = 0
        self._num_staging = max(MIN_STAGING_BLOCKS, min(gpu_blocks, STAGING_BYTES // slab.num_bytes))
        self._limit = capacity + self._num_staging
        self._num_kept = KEPT_BYTES // slab.num_bytes
        self._free: list[int] = []

    @property
    def num_staging(self) -> int:
        """Blocks that may be on their way, beyond what the cpu tier may hold."""
        return self._num_staging

    def take(self) -> HostSlot | None:
        """None when too much is on its way to disk: storing more would fill the memory."""
        if self.num_in_use >= min(self._limit, self.pool.max_blocks):
            return None
        if not self._free:
            self._free.append(self.pool.num_blocks)
            self.pool.num_blocks += 1
        self.num_in_use += 1
        return HostSlot(heapq.heappop(self._free))

    def ref(self, host: HostSlot) -> HostSlot:
        host.refs += 1
        return host

    def unref(self, host: HostSlot) -> None:
        host.refs -= 1
        if host.refs:
            return
        heapq.heappush(self._free, host.slot)
        self.num_in_use -= 1
        self._limit = max(self.capacity + self._num_staging, min(self._limit, self.num_in_use + self._num_staging))
        if host.slot >= self.capacity + self._num_kept:
            self.pool.discard(host.slot)

    def resize(self, capacity: int) -> None:
        """What is in use beyond a smaller capacity may leave in its own time."""
        for slot in self._free:
            if slot >= capacity + self._num_kept:
                self.pool.discard(slot)
        self.capacity = capacity
        self._limit = max(capacity, self.num_in_use) + self._num_staging

    def check(self, held: dict[HostSlot, int]) -> None:
        """`held` counts the references that tiers have when no transfer is under way."""
        slots = {host.slot for host in held}
        assert len(slots) == len(held), "a host slot is owned twice"
        assert not slots & set(self._free), "a host slot is free and in use"
        assert self.num_in_use + len(self._free) == self.pool.num_blocks, "free and used host slots are not all slots"
        for host, refs in held.items():
            assert host.refs >= refs, "a host slot has fewer references than owners"
