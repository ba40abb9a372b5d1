"""One tier's level with blocks that are linked by hand, and a policy on it. No bytes, no other tiers."""

from tiers import Policy, Tier, TierConfig
from tiers.books.books import Books
from tiers.eviction import Exit
from tiers.level import Level
from tiers.node import Copy, Node, copies, ensure, find

KEY_BYTES = 16


def key_of(path: bytes) -> bytes:
    """Its length tells "a" from "a\\0"."""
    return path.ljust(KEY_BYTES - 1, b"\0") + bytes([len(path)])


def path_of(node: Node) -> bytes:
    return node.key[: node.key[-1]]


def tenant_of(path: bytes) -> str:
    return path[:1].hex()


class LevelRig:
    """Blocks are named by paths: b"" is no block, b"a" a root, b"ab" follows it. Each root is a tenant's."""

    def __init__(self, policy: Policy, capacity: int) -> None:
        self.books = Books(1)
        self.level = Level(self.books, 0, TierConfig(Tier.CPU, capacity, policy=policy), 1)

    @property
    def resident(self) -> set[bytes]:
        return {path_of(copy.node) for copy in copies(self.books, self.books.live_copies())}

    def node(self, path: bytes) -> Node:
        for depth in range(len(path)):
            node = ensure(self.books, key_of(path[: depth + 1]), key_of(path[:depth]), depth)
        return node

    def find(self, path: bytes) -> Copy | None:
        node = find(self.books, key_of(path))
        return None if node is None else self.level.of(node)

    def book(self, path: bytes) -> Copy:
        node = self.node(path)
        self.books.give_to(node.row, tenant_of(path))
        return self.level.add(node, Tier.GPU, Tier.GPU)

    def add(self, path: bytes) -> Copy:
        copy = self.book(path)
        self.level.eviction.touch(copy)
        return copy

    def remove(self, copy: Copy, leave: Exit) -> None:
        node = copy.node
        self.level.remove(copy, leave)
        copy.give_row()
        node.tidy()

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
        key = key_of(incoming) if incoming else b""
        victim = self.level.eviction.victim(key)
        assert victim is not None, "nothing may leave"
        assert self.level.eviction.victim(key) == victim, "asked twice, it names two victims"
        return self.leave(victim)

    def evict_own(self, tenant: str) -> bytes:
        number = self.books.tenants.number(tenant)
        victim = self.level.eviction.victim_of(number)
        assert victim is not None, "nothing of the tenant's may leave"
        assert self.level.eviction.victim_of(number) == victim, "asked twice, it names two victims"
        return self.leave(victim)

    def leave(self, victim: Copy) -> bytes:
        assert not self.followers(victim.node), "a block leaves before one that follows it"
        path = path_of(victim.node)
        self.remove(victim, Exit.EVICTED)
        return path

    def followers(self, node: Node) -> list[Node]:
        return [child for child in node.children() if self.level.of(child) is not None]

    def check(self) -> None:
        self.level.eviction.check()
        self.books.check()
