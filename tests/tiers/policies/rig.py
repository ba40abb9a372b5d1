"""One tier's level with blocks that are linked by hand, and a policy on it. No bytes, no other tiers."""

from tiers import Policy, Tier, TierConfig
from tiers.level import Level
from tiers.node import Copy, Index, Node
from tiers.policies import Exit


class LevelRig:
    """Blocks are named by paths: b"" is no block, b"a" a root, b"ab" follows it."""

    def __init__(self, policy: Policy, capacity: int) -> None:
        self.level = Level(0, TierConfig(Tier.CPU, capacity, policy=policy), 1)
        self.index = Index(1)

    @property
    def resident(self) -> set[bytes]:
        return {key for key, node in self.index.nodes.items() if self.level.of(node) is not None}

    def node(self, path: bytes) -> Node:
        for depth in range(len(path)):
            node = self.index.ensure(path[: depth + 1], path[:depth], depth)
        return node

    def find(self, path: bytes) -> Copy | None:
        node = self.index.nodes.get(path)
        return None if node is None else self.level.of(node)

    def book(self, path: bytes) -> Copy:
        return self.level.add(self.node(path), Tier.GPU, Tier.GPU)

    def add(self, path: bytes) -> Copy:
        copy = self.book(path)
        self.level.eviction.touch(copy)
        return copy

    def remove(self, copy: Copy, leave: Exit) -> None:
        self.level.remove(copy, leave)
        self.index.tidy(copy.node)

    def access(self, path: bytes) -> list[bytes]:
        """As a cache of independent keys is asked: a hit, or room and a new block. Returns what left."""
        if (copy := self.find(path)) is not None:
            self.level.eviction.hold(copy)
            self.level.eviction.touch(copy)
            return []
        gone: list[bytes] = []
        while self.level.num_blocks >= self.level.capacity_blocks:
            gone.append(self.evict(path))
        self.add(path)
        return gone

    def evict(self, incoming: bytes = b"") -> bytes:
        victim = self.level.eviction.victim(incoming)
        assert victim is not None, "nothing may leave"
        assert self.level.eviction.victim(incoming) is victim, "asked twice, it names two victims"
        assert not self.followers(victim.node), "a block leaves before one that follows it"
        self.remove(victim, Exit.EVICTED)
        return victim.node.key

    def followers(self, node: Node) -> list[Node]:
        return [child for child in node.children or () if self.level.of(child) is not None]
