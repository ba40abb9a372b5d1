"""Least recently used: one list. Children are always older than their parents, so the oldest block is a leaf."""

from collections import OrderedDict

from tiers.keys import BlockKey
from tiers.node import Copy
from tiers.policies.base import Exit


class Lru:
    """Blocks that may leave, oldest first; what is held is not in the list."""

    __slots__ = ("_order",)

    def __init__(self, capacity_blocks: int) -> None:
        self._order: OrderedDict[Copy, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, copy: Copy) -> bool:
        return copy in self._order

    def touch(self, copy: Copy) -> None:
        self._order[copy] = None
        self._order.move_to_end(copy)

    def enter(self, copy: Copy) -> None:
        """As the newest, but for blocks before it that are here, too (only after a change of mode)."""
        entering: Copy | None = copy
        while entering is not None:
            self.touch(entering)
            parent = entering.node.parent
            before = None if parent is None else copy.level.of(parent)
            entering = before if before in self._order else None

    def hold(self, copy: Copy) -> None:
        self._order.pop(copy, None)

    def remove(self, copy: Copy, leave: Exit) -> None:
        self._order.pop(copy, None)

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        return next(iter(self._order), None)

    def resize(self, capacity_blocks: int) -> None:
        """It makes no difference here."""

    def oldest_first(self) -> list[Copy]:
        return list(self._order)

    def check(self) -> None:
        age = {copy.node: at for at, copy in enumerate(self._order)}
        for node, at in age.items():
            assert node.parent is None or age.get(node.parent, at) >= at, "a block would leave before its child"
