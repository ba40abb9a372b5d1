"""One tier's bookkeeping: which copies count against its size, and in which order they would leave.

Knows nothing about bytes or about other tiers. The order is least recently used first; since a request touches its
blocks from the tail to the head, a parent is younger than its children, and a victim is nearly always the first.
"""

from collections import OrderedDict
from collections.abc import Iterator

from tiers.index import Copy, Node
from tiers.names import Policy, Tier, WriteMode
from tiers.stats import TierCounters


class Level:
    """Tier number `index` (0 is gpu). Sizes are whole blocks of `block_bytes` each."""

    def __init__(self, index: int, tier: Tier, block_bytes: int, capacity_bytes: int, write_mode: WriteMode) -> None:
        self.index = index
        self.tier = tier
        self.block_bytes = block_bytes
        self.capacity_bytes = capacity_bytes
        self.write_mode = write_mode
        self.policy = Policy.LRU
        self.counters = TierCounters()
        self.num_charged = 0
        self.num_resident = 0
        self.num_leaving = 0
        self.num_pinned = 0
        self.eviction_reason = "capacity"
        self._order: OrderedDict[Copy, None] = OrderedDict()

    @property
    def capacity_blocks(self) -> int:
        return self.capacity_bytes // self.block_bytes

    @property
    def num_over(self) -> int:
        """Blocks that must still leave."""
        return self.num_charged - self.capacity_blocks

    # -- copies come, stay, go ---------------------------------------------------------------------------------------
    def add(self, node: Node, slot: int, *, is_valid: bool) -> Copy:
        """A new copy, youngest in the order."""
        copy = node.copies[self.index] = Copy(node, self.index, slot, is_valid=is_valid)
        self.charge(copy)
        self._stay(copy)
        self._order[copy] = None
        self.num_resident += is_valid
        return copy

    def landed(self, copy: Copy) -> None:
        """All bytes have arrived."""
        copy.is_valid = True
        copy.is_arriving = False
        self.num_resident += 1

    def spoil(self, copy: Copy) -> None:
        """The bytes have turned out to be wrong."""
        self.num_resident -= copy.is_valid
        copy.is_valid = False

    def remove(self, copy: Copy) -> None:
        """The copy's bytes are gone, or are nobody's any more."""
        self._order.pop(copy, None)
        self.uncharge(copy)
        if copy.is_leaving:
            self.num_leaving -= 1
        else:
            self._unstay(copy)
        self.num_resident -= copy.is_valid
        self.num_pinned -= bool(copy.num_pins)
        copy.node.copies[self.index] = None

    def start_leaving(self, copy: Copy) -> None:
        self._order.pop(copy, None)
        self.uncharge(copy)
        self._unstay(copy)
        copy.is_leaving = True
        self.num_leaving += 1

    def rescue(self, copy: Copy) -> None:
        """A leaving copy is wanted after all."""
        copy.is_leaving = False
        self.num_leaving -= 1
        self.charge(copy)
        self._stay(copy)
        if not copy.num_pins:
            self._order[copy] = None

    def charge(self, copy: Copy) -> None:
        self.num_charged += not copy.is_charged
        copy.is_charged = True

    def uncharge(self, copy: Copy) -> None:
        self.num_charged -= copy.is_charged
        copy.is_charged = False

    # -- recency -----------------------------------------------------------------------------------------------------
    def pin(self, copy: Copy) -> None:
        self.num_pinned += not copy.num_pins
        copy.num_pins += 1
        self._order.pop(copy, None)

    def unpin(self, copy: Copy) -> None:
        copy.num_pins -= 1
        self.num_pinned -= not copy.num_pins
        if not copy.num_pins and not copy.is_leaving:
            self._order[copy] = None

    @property
    def num_unpinned(self) -> int:
        return len(self._order)

    def touch(self, copy: Copy) -> None:
        if copy in self._order:
            self._order.move_to_end(copy)

    def victim(self) -> Copy | None:
        """The least recently used copy without children in this level; None while all are pinned or on their way in."""
        for copy in self._order:
            if copy.is_valid and not copy.node.num_children[self.index]:
                return copy
        return None

    def unpinned(self) -> Iterator[Copy]:
        """Oldest first; safe against changes on the way."""
        return iter(list(self._order))

    def _stay(self, copy: Copy) -> None:
        if copy.node.parent is not None:
            copy.node.parent.num_children[self.index] += 1

    def _unstay(self, copy: Copy) -> None:
        if copy.node.parent is not None:
            copy.node.parent.num_children[self.index] -= 1

    def check(self, copies: list[Copy]) -> None:
        """`copies` are all that the index knows of this level."""
        assert self.num_charged == sum(copy.is_charged for copy in copies), (
            f"{self.tier}: charged blocks are miscounted"
        )
        assert self.num_resident == sum(copy.is_valid for copy in copies), (
            f"{self.tier}: resident blocks are miscounted"
        )
        assert self.num_leaving == sum(copy.is_leaving for copy in copies), (
            f"{self.tier}: leaving blocks are miscounted"
        )
        assert self.num_pinned == sum(copy.num_pins > 0 for copy in copies), (
            f"{self.tier}: pinned blocks are miscounted"
        )
        ordered = {copy for copy in copies if not copy.num_pins and not copy.is_leaving}
        assert ordered == set(self._order), f"{self.tier}: the order does not hold just the unpinned copies"
        assert all(copy.num_pins >= 0 and copy.num_readers >= 0 for copy in copies), f"{self.tier}: a count is below 0"
