"""A block that is known, its copies in tiers, and the index by key. Knows nothing about who leaves when.

A node without copies stays as long as it has children: blocks of a longer prefix, reachable again once it is back.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Optional

from tiers.host import HostSlot
from tiers.keys import BlockKey
from tiers.names import Tier

if TYPE_CHECKING:
    from tiers.lease import Lease
    from tiers.level import Level


class Copy:
    """One block in one tier: it counts there from the moment that is decided.

    `slot` is the gpu slot, `host` the host slot that has the bytes (cpu tier, or disk until its file is written).
    `source` is where the block still validly lies while this copy is not. `pins` are leases, `holds` transfers.
    """

    __slots__ = ("holds", "host", "is_live", "is_valid", "level", "node", "pins", "slot", "source", "waiters")

    def __init__(self, node: "Node", level: "Level", source: Tier) -> None:
        self.node = node
        self.level = level
        self.source = source
        self.slot = -1
        self.host: HostSlot | None = None
        self.pins = 0
        self.holds = 0
        self.is_live = True
        self.is_valid = False
        self.waiters: list[Lease] | None = None

    @property
    def tier(self) -> Tier:
        return self.level.tier if self.is_valid else self.source


class Node:
    """A block key, its parent (None for the first block of a prompt) and its copies, one place a level.

    `num_hits` are requests that found the block since it last was in no tier.
    """

    __slots__ = ("children", "copies", "depth", "key", "num_hits", "parent", "parent_key")

    def __init__(self, key: BlockKey, parent: Optional["Node"], depth: int, num_levels: int) -> None:
        self.key = key
        self.parent = parent
        self.parent_key: BlockKey = b""
        self.depth = depth
        self.num_hits = 0
        self.copies: list[Copy | None] = [None] * num_levels
        self.children: set[Node] | None = None

    @property
    def fastest(self) -> Copy | None:
        for copy in self.copies:
            if copy is not None:
                return copy
        return None

    @property
    def is_pinned(self) -> bool:
        """Read by a lease, or about to be: none of its copies may leave."""
        gpu = self.copies[0]
        return gpu is not None and (gpu.pins > 0 or not gpu.is_valid)

    def live_copies(self) -> list[Copy]:
        return [copy for copy in self.copies if copy is not None]


class Index:
    """All nodes by key."""

    def __init__(self, num_levels: int) -> None:
        self.nodes: dict[BlockKey, Node] = {}
        self._num_levels = num_levels

    def resident_prefix(self, keys: Sequence[BlockKey]) -> list[Node]:
        """The longest run of blocks, from the first, that lie in some tier."""
        found: list[Node] = []
        for key in keys:
            node = self.nodes.get(key)
            if node is None or node.fastest is None:
                break
            found.append(node)
        return found

    def ensure(self, key: BlockKey, parent_key: BlockKey, depth: int) -> Node:
        """The node, made and linked to its parent if need be."""
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(key, None, depth, self._num_levels)
        node.parent_key = parent_key
        if depth and node.parent is None:
            parent = self.nodes.get(parent_key)
            if parent is None:  # its own parent gets known when it is back
                parent = self.nodes[parent_key] = Node(parent_key, None, depth - 1, self._num_levels)
            node.parent = parent
            if parent.children is None:
                parent.children = set()
            parent.children.add(node)
        return node

    def tidy(self, node: Node | None) -> None:
        """Forget a node that has neither copies nor children, and then perhaps its parent."""
        while node is not None and node.fastest is None:
            node.num_hits = 0
            if node.children or node.key not in self.nodes:
                return
            del self.nodes[node.key]
            parent = node.parent
            if parent is not None and parent.children is not None:
                parent.children.discard(node)
            node = parent

    def descendants(self, node: Node) -> Iterator[Node]:
        stack = list(node.children or ())
        while stack:
            child = stack.pop()
            stack.extend(child.children or ())
            yield child

    def num_orphans(self) -> int:
        """Resident blocks whose parent is not: cleared or lost tiers and restarts leave them."""
        nodes = self.nodes.values()
        return sum(n.depth > 0 and n.fastest is not None and (not n.parent or not n.parent.fastest) for n in nodes)


def oldest_first(newest_first: Iterable[Node]) -> list[Node]:
    """An order of use in which parents are newer than their children, whatever order the blocks came in."""
    seen: set[Node] = set()
    order: list[Node] = []
    for start in newest_first:
        chain: list[Node] = []
        node: Node | None = start
        while node is not None and node not in seen:
            seen.add(node)
            chain.append(node)
            node = node.parent
        order.extend(reversed(chain))
    order.reverse()
    return order
