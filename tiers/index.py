"""Which blocks exist and how they hang together: nodes chained by key, each with its copies by level.

Knows nothing about bytes, sizes or recency.
"""

from collections.abc import Iterator

from tiers.keys import BlockKey


class Copy:
    """A block's bytes in one level.

    `is_valid`: the bytes are whole; `is_arriving`: they are on their way in. `num_pins`: leases and loads that hold
    it. `num_readers`: stores that read it. `is_leaving`: it goes as soon as nobody holds or reads it. `is_charged`: it
    counts against the level's size. `is_detached`: a load that failed; only its slot is left, until its holders let go.
    """

    __slots__ = (
        *("node", "level", "slot", "is_valid", "is_arriving", "num_pins", "num_readers"),
        *("is_leaving", "is_charged", "is_detached"),
    )

    def __init__(self, node: "Node", level: int, slot: int, *, is_valid: bool) -> None:
        self.node = node
        self.level = level
        self.slot = slot
        self.is_valid = is_valid
        self.is_arriving = not is_valid
        self.num_pins = 0
        self.num_readers = 0
        self.is_leaving = False
        self.is_charged = False
        self.is_detached = False

    @property
    def is_idle(self) -> bool:
        return not (self.num_pins or self.num_readers or self.is_arriving)


class Node:
    """A block that lies somewhere. `num_children[level]` counts the children with a staying copy in that level."""

    __slots__ = ("copies", "key", "num_child_nodes", "num_children", "parent", "parent_key")

    def __init__(self, key: BlockKey, parent_key: BlockKey, num_levels: int) -> None:
        self.key = key
        self.parent_key = parent_key
        self.parent: Node | None = None
        self.copies: list[Copy | None] = [None] * num_levels
        self.num_children = [0] * num_levels
        self.num_child_nodes = 0

    def fastest(self) -> Copy | None:
        """The fastest copy whose bytes are whole."""
        for copy in self.copies:
            if copy is not None and copy.is_valid:
                return copy
        return None

    def staying(self) -> Iterator[int]:
        """Levels where a copy lies that is not on its way out."""
        return (copy.level for copy in self.copies if copy is not None and not copy.is_leaving)


class Index:
    """All nodes by key. A node is here while it has a copy; its parent may be gone, or come (back) later."""

    def __init__(self, num_levels: int) -> None:
        self._num_levels = num_levels
        self._nodes: dict[BlockKey, Node] = {}
        self._parentless: dict[BlockKey, set[Node]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, key: BlockKey) -> Node | None:
        return self._nodes.get(key)

    def get_or_add(self, key: BlockKey, parent_key: BlockKey) -> Node:
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(key, parent_key, self._num_levels)
            self._hang(node)
            for child in self._parentless.pop(key, ()):
                self._adopt(node, child)
        return node

    def drop_if_empty(self, node: Node) -> None:
        if any(node.copies):
            return
        del self._nodes[node.key]
        self._orphan_children(node)
        if node.parent is not None:
            node.parent.num_child_nodes -= 1
        else:
            orphans = self._parentless.get(node.parent_key, set())
            orphans.discard(node)
            if not orphans:
                self._parentless.pop(node.parent_key, None)

    def _hang(self, node: Node) -> None:
        parent = self._nodes.get(node.parent_key)
        if parent is None:
            self._parentless.setdefault(node.parent_key, set()).add(node)
        else:
            node.parent = parent
            parent.num_child_nodes += 1

    def _adopt(self, parent: Node, child: Node) -> None:
        child.parent = parent
        parent.num_child_nodes += 1
        for level in child.staying():
            parent.num_children[level] += 1

    def _orphan_children(self, node: Node) -> None:
        """Children of a node that is gone are rare (a cleared tier, a corrupt block): looking for them may cost."""
        if not node.num_child_nodes:
            return
        for child in self._nodes.values():
            if child.parent is node:
                child.parent = None
                self._parentless.setdefault(node.key, set()).add(child)

    def check(self) -> None:
        counted: dict[BlockKey, list[int]] = {}
        for node in self._nodes.values():
            assert any(node.copies), "a node without copies is in the index"
            parent = self._nodes.get(node.parent_key)
            assert node.parent is parent, "a node hangs on the wrong parent"
            assert (parent is not None) or node in self._parentless.get(node.parent_key, set()), "an orphan is lost"
            for level in node.staying():
                counted.setdefault(node.parent_key, [0] * self._num_levels)[level] += 1
        for node in self._nodes.values():
            assert node.num_children == counted.get(node.key, [0] * self._num_levels), "children are miscounted"
