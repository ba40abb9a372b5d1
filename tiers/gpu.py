"""The gpu tier's slots: free, owned, or draining (evicted, but a copy out of them is still under way).

Knows nothing about which block should leave. A draining slot may be promised to a lease, which waits for it.
"""

from tiers.errors import RefusedError
from tiers.lease import Lease
from tiers.level import Level
from tiers.node import Copy
from tiers.pool import BlockPool
from tiers.sizes import in_words
from tiers.slots import Slots

# Blocks moved out of the way of a shrinking pool in one step: 64 × 0.7 MiB take about 10 ms.
MOVES_A_STEP = 64


class Gpu:
    """Level 0 with its pool. All slots of leases and resident blocks are in use here."""

    def __init__(self, level: Level, pool: BlockPool) -> None:
        self.level = level
        self.pool = pool
        self.slots = Slots(pool.num_blocks)
        self.draining: dict[int, None] = {}
        self.promised: dict[int, Lease] = {}

    @property
    def num_obtainable(self) -> int:
        """Slots a lease could still get: free, draining, or held by blocks that nobody reads."""
        num_bound = self.slots.num_in_use - len(self.level.eviction) - len(self.draining)
        return max(0, self.slots.limit - num_bound)

    @property
    def is_over(self) -> bool:
        return self.slots.num_in_use - len(self.draining) > self.slots.limit

    def evicted(self, copy: Copy) -> None:
        """The block has left, but transfers still read its slot."""
        self.draining[copy.slot] = None

    def promise(self, slot: int, lease: Lease) -> int:
        del self.draining[slot]
        self.promised[slot] = lease
        lease.num_pending += 1
        return slot

    def drained(self, slot: int) -> None:
        """Nothing needs the slot's old content any more."""
        lease = self.promised.pop(slot, None)
        if lease is not None:
            lease.num_pending -= 1
            return
        self.draining.pop(slot, None)
        self.slots.give(slot)

    def unpromise(self, slot: int) -> None:
        """The lease to which it was promised ends before its old content is out."""
        del self.promised[slot]
        self.draining[slot] = None

    def resize(self, capacity_bytes: int) -> None:
        """The new limit holds at once; the pool itself shrinks by `shrink`, when no slot beyond is in use."""
        num_blocks = capacity_bytes // self.level.block_bytes
        if num_blocks > self.slots.num_total:
            self._grow(num_blocks, capacity_bytes)
        self.slots.set_limit(num_blocks)
        self.level.resize(capacity_bytes)
        self.level.is_shrinking = num_blocks < self.slots.num_total

    def _grow(self, num_blocks: int, capacity_bytes: int) -> None:
        try:
            self.pool.resize(num_blocks)
        except MemoryError as error:
            raise RefusedError(
                f"The gpu tier stays as it is, the device cannot give {in_words(capacity_bytes)}: {error}."
            ) from error
        self.slots.grow(num_blocks)

    def shrink(self) -> bool:
        """Move blocks that nobody reads below the limit and cut the pool as soon as it can be; True if it was cut."""
        self._move_down()
        if not self.slots.is_settled:
            return False
        self.pool.resize(self.slots.limit)
        self.slots.trim()
        self.level.is_shrinking = False
        return True

    def _move_down(self) -> None:
        beyond = [c for c in self.level.eviction.oldest_first() if c.slot >= self.slots.limit and not c.holds]
        for copy in beyond[:MOVES_A_STEP]:
            slot = self.slots.take_below_limit()
            if slot is None:
                return
            self.pool.move(copy.slot, slot)
            self.slots.give(copy.slot)
            copy.slot = slot
