"""Slots of the gpu pool for leases: free ones, and those of blocks that leave, which go down or are dropped.

A tenant that would have more of the tier than it may gives up blocks of its own first. Knows nothing about keys' order.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books import requests
from tiers.books.books import Books
from tiers.books.compiled import Ints32, Ints64
from tiers.gpu import Gpu
from tiers.keys import BlockKey
from tiers.ladder import Ladder
from tiers.lease import Lease
from tiers.node import Node


class Taking:
    """Changes are sent off by `Ladder.submit`."""

    def __init__(self, gpu: Gpu, books: Books, ladder: Ladder) -> None:
        self._gpu = gpu
        self._books = books
        self._ladder = ladder

    def take(self, lease: Lease, keys: Ints32, num_blocks: int, *, are_counted: bool = False) -> Ints64:
        """Slots for so many of the lease's blocks, the first ones with these keys; counted: they are booked already."""
        gpu, slots, done = self._gpu, np.empty(num_blocks, np.int64), 0
        tenant, step = self._books.tenants.number(lease.tenant), 0 if are_counted else 1
        while True:
            self._books.reserve(memories=2 * (num_blocks - done))  # what leaves may be remembered, twice
            filled, num_evicted = requests.take_slots(
                *self._books.tables,
                gpu.slots.words,
                gpu.slots.counts,
                keys[done:],
                slots[done:],
                tenant,
                done * step,
                step,
            )
            gpu.level.evicted[gpu.level.reason] += num_evicted
            done += filled
            if done == num_blocks:
                return slots
            key = keys[done].tobytes() if done < len(keys) else b""
            slots[done] = self._obtain(lease, key, tenant, step * (done + 1))
            done += 1

    def _obtain(self, lease: Lease, key: BlockKey, tenant: int, num_coming: int) -> int:
        """A slot for the lease's block with that key: a free one, the oldest block's, or one that is draining."""
        slot = self._gpu.slots.take()
        while slot is None and (oldest := self._gpu.level.eviction.victim_for(tenant, num_coming, key)):
            oldest_slot = oldest.slot
            self._ladder.evict(oldest, self._gpu.level.reason)
            slot = self._gpu.slots.take()
            if slot is None and oldest_slot in self._gpu.draining:
                return self._gpu.promise(oldest_slot, lease)
        return self._gpu.promise(next(iter(self._gpu.draining)), lease) if slot is None else slot

    def free_after_evictions(self, wanted: int, tenant: str, keep: Sequence[Node] = ()) -> int:
        """Free slots now; if they are fewer than wanted, evictions are started (of `keep` only as the last)."""
        gpu, number = self._gpu, self._books.tenants.number(tenant)
        for node in reversed(keep):
            if (copy := gpu.level.of(node)) is not None and copy in gpu.level.eviction:
                gpu.level.eviction.touch(copy)
        if wanted <= gpu.num_obtainable:
            while gpu.slots.num_free + len(gpu.draining) < wanted and (
                oldest := gpu.level.eviction.victim_for(number, wanted)
            ):
                self._ladder.evict(oldest, gpu.level.reason)
            self._ladder.rebalance()
            self._ladder.submit()
        return gpu.slots.num_free
