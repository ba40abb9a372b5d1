"""One tier's books: which blocks are charged to it, who leaves next, and what has been counted.

Knows nothing about the other tiers or how bytes move.
"""

from collections import OrderedDict

from tiers.names import Policy, Tier, WriteMode
from tiers.node import Copy, Node
from tiers.stats import EVICTION_REASONS, OPERATIONS, LoadTimer, TierStats


class Lru:
    """Blocks that may leave, oldest first. Leases touch a prefix from its tail to its head: children are older."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._order: OrderedDict[Copy, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, copy: Copy) -> bool:
        return copy in self._order

    def touch(self, copy: Copy) -> None:
        self._order[copy] = None
        self._order.move_to_end(copy)

    def remove(self, copy: Copy) -> None:
        self._order.pop(copy, None)

    @property
    def oldest(self) -> Copy | None:
        return next(iter(self._order), None)

    def oldest_first(self) -> list[Copy]:
        return list(self._order)


class Level:
    """`rank` 0 is gpu. `block_bytes` is what one block takes here; `num_blocks` are charged now."""

    def __init__(self, rank: int, tier: Tier, capacity_bytes: int, block_bytes: int, write_mode: WriteMode) -> None:
        self.rank = rank
        self.tier = tier
        self.block_bytes = block_bytes
        self.resize(capacity_bytes)
        self.write_mode = write_mode
        self.policy = Policy.LRU
        self.lru = Lru()
        self.num_blocks = 0
        self.is_shrinking = False
        self.num_stored = self.num_loaded = 0
        self.evicted = dict.fromkeys(EVICTION_REASONS, 0)
        self.errors = dict.fromkeys(OPERATIONS, 0)
        self.timer = LoadTimer()

    def resize(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.capacity_blocks = capacity_bytes // self.block_bytes

    @property
    def is_over(self) -> bool:
        return self.num_blocks > self.capacity_blocks

    @property
    def writes_through(self) -> bool:
        return self.write_mode is WriteMode.WRITE_THROUGH and self.capacity_blocks > 0

    @property
    def reason(self) -> str:
        """Why a block that makes room leaves."""
        return "resize" if self.is_shrinking else "capacity"

    def of(self, node: Node) -> Copy | None:
        return node.copies[self.rank]

    def add(self, node: Node, source: Tier) -> Copy:
        copy = node.copies[self.rank] = Copy(node, self, source)
        self.num_blocks += 1
        return copy

    def remove(self, copy: Copy) -> None:
        copy.node.copies[self.rank] = None
        copy.is_live = False
        self.num_blocks -= 1
        self.lru.remove(copy)

    def stats(self, block_size: int, used_blocks: int) -> TierStats:
        return TierStats(
            capacity_bytes=self.capacity_bytes,
            capacity_blocks=self.capacity_blocks,
            block_bytes=self.block_bytes,
            used_bytes=used_blocks * self.block_bytes,
            resident_blocks=self.num_blocks,
            resident_tokens=self.num_blocks * block_size,
            pinned_blocks=self.num_blocks - len(self.lru),
            stored_bytes=self.num_stored * self.block_bytes,
            stored_blocks=self.num_stored,
            loaded_bytes=self.num_loaded * self.block_bytes,
            loaded_blocks=self.num_loaded,
            evicted_blocks=dict(self.evicted),
            errors=dict(self.errors),
            load_seconds=self.timer.read(),
        )
