"""Two queues of a tier's blocks, closed under prefix: what S3-FIFO and ARC are made of. Knows nothing about either.

A block that comes to the old end of its queue while it is read, or while blocks that follow it are in the tier, is set
aside and comes back to that end as soon as it may leave. Each time costs one hold or one block that followed, so the
search for a victim takes constant time, amortised.
"""

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict

from tiers.node import Copy, Node, oldest_first


class Entry:
    """A block's place: its queue, how often it was used there, whether it is read, whether it is set aside."""

    __slots__ = ("is_aside", "is_held", "num_uses", "queue")

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.num_uses = 0
        self.is_held = self.is_aside = False


class LeafQueues:
    """Queues 0 and 1. `sizes` count all blocks of each, also those set aside."""

    __slots__ = ("_entries", "_num_followers", "_num_held", "_queues", "sizes")

    def __init__(self) -> None:
        self._queues: tuple[OrderedDict[Copy, None], OrderedDict[Copy, None]] = (OrderedDict(), OrderedDict())
        self._entries: dict[Copy, Entry] = {}
        self._num_followers: dict[Node, int] = {}
        self._num_held = 0
        self.sizes = [0, 0]

    def __len__(self) -> int:
        """Blocks that nobody reads."""
        return len(self._entries) - self._num_held

    def __contains__(self, copy: Copy) -> bool:
        entry = self._entries.get(copy)
        return entry is not None and not entry.is_held

    def get(self, copy: Copy) -> Entry | None:
        return self._entries.get(copy)

    def add(self, copy: Copy, queue: int) -> None:
        """As the newest of the queue."""
        self._entries[copy] = Entry(queue)
        self._queues[queue][copy] = None
        self.sizes[queue] += 1
        parent = copy.node.parent
        if parent is not None:
            self._num_followers[parent] = self._num_followers.get(parent, 0) + 1

    def move(self, copy: Copy, entry: Entry, queue: int) -> None:
        """To the new end of a queue, perhaps of its own; nobody reads it now."""
        self._queues[entry.queue].pop(copy, None)
        self.sizes[entry.queue] -= 1
        self.sizes[queue] += 1
        entry.queue = queue
        self._num_held -= entry.is_held
        entry.is_held = entry.is_aside = False
        self._queues[queue][copy] = None

    def hold(self, copy: Copy) -> None:
        entry = self._entries.get(copy)
        if entry is not None and not entry.is_held:
            entry.is_held = True
            self._num_held += 1

    def let_go(self, copy: Copy, entry: Entry) -> None:
        """Where it is; nobody reads it now."""
        self._num_held -= entry.is_held
        entry.is_held = False
        if entry.is_aside and copy.node not in self._num_followers:
            self._bring_back(copy, entry)

    def drop(self, copy: Copy) -> Entry | None:
        """Out of its queue; None if it was in none."""
        entry = self._entries.pop(copy, None)
        if entry is None:
            return None
        self._queues[entry.queue].pop(copy, None)
        self.sizes[entry.queue] -= 1
        self._num_held -= entry.is_held
        if copy.node.parent is not None:
            self._unfollow(copy, copy.node.parent)
        return entry

    def oldest(self, queue: int) -> tuple[Copy, Entry] | None:
        """The oldest block of the queue that may leave."""
        order = self._queues[queue]
        while order:
            copy = next(iter(order))
            entry = self._entries[copy]
            if not entry.is_held and copy.node not in self._num_followers:
                return copy, entry
            del order[copy]
            entry.is_aside = True
        return None

    def oldest_first(self) -> list[Copy]:
        """Blocks that nobody reads, queue 0 before queue 1, but children before their parents. Walks everything."""
        queued = [copy for order in self._queues for copy in order]
        aside = [copy for copy, entry in self._entries.items() if entry.is_aside]
        free = {copy.node: copy for copy in aside + queued if copy in self}
        return [free[node] for node in oldest_first(reversed(free)) if node in free]

    def _unfollow(self, copy: Copy, parent: Node) -> None:
        self._num_followers[parent] -= 1
        if self._num_followers[parent]:
            return
        del self._num_followers[parent]
        before = copy.level.of(parent)
        entry = None if before is None else self._entries.get(before)
        if before is not None and entry is not None and entry.is_aside and not entry.is_held:
            self._bring_back(before, entry)

    def _bring_back(self, copy: Copy, entry: Entry) -> None:
        entry.is_aside = False
        order = self._queues[entry.queue]
        order[copy] = None
        order.move_to_end(copy, last=False)

    def check(self) -> None:
        queued = [copy for order in self._queues for copy in order]
        aside = {copy for copy, entry in self._entries.items() if entry.is_aside}
        assert len(queued) == len(set(queued)), "a block is queued twice"
        assert aside.isdisjoint(queued), "a block is queued and set aside"
        assert aside.union(queued) == self._entries.keys(), "a block is neither queued nor set aside"
        followers = Counter(copy.node.parent for copy in self._entries if copy.node.parent is not None)
        assert followers == self._num_followers, "the number of blocks that follow is off"
        for copy in aside:
            is_free = copy in self and copy.node not in followers
            assert not is_free, "a block that may leave is set aside"
        for queue in (0, 1):
            num_blocks = sum(entry.queue == queue for entry in self._entries.values())
            assert self.sizes[queue] == num_blocks, "the size of a queue is off"
            assert all(self._entries[copy].queue == queue for copy in self._queues[queue]), (
                "a block is in a wrong queue"
            )
        assert self._num_held == sum(entry.is_held for entry in self._entries.values()), "the number of reads is off"


class QueuedPolicy(ABC):
    """What policies over two queues have in common; the rest of an EvictionPolicy is theirs."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues = LeafQueues()

    def __len__(self) -> int:
        return len(self._queues)

    def __contains__(self, copy: Copy) -> bool:
        return copy in self._queues

    @abstractmethod
    def touch(self, copy: Copy) -> None: ...

    def enter(self, copy: Copy) -> None:
        self.touch(copy)

    def hold(self, copy: Copy) -> None:
        self._queues.hold(copy)

    def oldest_first(self) -> list[Copy]:
        return self._queues.oldest_first()
