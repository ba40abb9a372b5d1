"""ARC (Megiddo & Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST '03), closed under prefix.

Blocks used once lately and blocks used more often are two LRU lists (T1, T2), each with a list of keys that left it
(B1, B2). A key that returns from B1 says that the first should be larger, one from B2 that the second should; `_target`
(p) follows. The paper makes room for a block whose key it knows: `victim` takes that key. A block that was read here
and moved up joins B2, so that it returns to T2; as it was no miss, it moves no target.
"""

from collections import OrderedDict

from tiers.keys import BlockKey
from tiers.node import Copy
from tiers.policies.base import Exit
from tiers.policies.queues import QueuedPolicy

ONCE, OFTEN = 0, 1
Ghosts = OrderedDict[BlockKey, bool]


class Arc(QueuedPolicy):
    """`_ghosts` are B1 and B2, oldest first; the value says whether the key has moved the target already.

    With a tier of c blocks T1 and B1 have at most c, all four lists 2 c.
    """

    __slots__ = ("_capacity", "_ghosts", "_target")

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__()
        self._capacity = capacity_blocks
        self._ghosts: tuple[Ghosts, Ghosts] = (OrderedDict(), OrderedDict())
        self._target = 0.0

    def touch(self, copy: Copy) -> None:
        entry = self._queues.get(copy)
        if entry is None:
            self._add(copy)
        else:
            self._queues.move(copy, entry, OFTEN)

    def remove(self, copy: Copy, leave: Exit) -> None:
        entry = self._queues.drop(copy)
        if entry is None or leave is Exit.DROPPED:
            return
        if leave is Exit.PROMOTED:
            self._ghosts[OFTEN][copy.node.key] = True
        else:
            self._ghosts[entry.queue][copy.node.key] = False
        self._trim()

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        self._adapt(incoming)
        num_once = self._queues.sizes[ONCE]
        is_even = num_once == self._target and incoming in self._ghosts[OFTEN]
        first = ONCE if num_once > self._target or is_even else OFTEN
        oldest = self._queues.oldest(first) or self._queues.oldest(1 - first)
        return oldest and oldest[0]

    def resize(self, capacity_blocks: int) -> None:
        self._capacity = capacity_blocks
        self._target = min(self._target, capacity_blocks)
        self._trim()

    def check(self) -> None:
        self._queues.check()
        once, often = self._ghosts
        assert not once.keys() & often.keys(), "a key is remembered twice"
        assert 0 <= self._target <= self._capacity, "the target is no size of the tier"
        assert not once or self._queues.sizes[ONCE] + len(once) <= self._capacity, "B1 is too long"
        assert not often or self._num_known <= 2 * self._capacity, "B2 is too long"

    def _add(self, copy: Copy) -> None:
        key = copy.node.key
        self._adapt(key)
        is_known = any(ghosts.pop(key, None) is not None for ghosts in self._ghosts)
        self._queues.add(copy, OFTEN if is_known else ONCE)
        self._trim()

    def _adapt(self, key: BlockKey) -> None:
        """Once for each time that a key is remembered."""
        once, often = self._ghosts
        if once.get(key) is False:
            once[key] = True
            self._target = min(self._target + max(1.0, len(often) / len(once)), self._capacity)
        elif often.get(key) is False:
            often[key] = True
            self._target = max(self._target - max(1.0, len(once) / len(often)), 0.0)

    @property
    def _num_known(self) -> int:
        return sum(self._queues.sizes) + sum(map(len, self._ghosts))

    def _trim(self) -> None:
        once, often = self._ghosts
        while once and self._queues.sizes[ONCE] + len(once) > self._capacity:
            once.popitem(last=False)
        while often and self._num_known > 2 * self._capacity:
            often.popitem(last=False)
