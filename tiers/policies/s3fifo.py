"""S3-FIFO (Yang et al., "FIFO Queues are All You Need for Cache Eviction", SOSP '23), closed under prefix.

New blocks pass a small queue, a tenth of the tier; those used twice there move on to the main queue, a clock with two
bits. Blocks that left the small queue are remembered by key alone and go straight to the main queue when they return,
as do those that were read here and moved up. One block leaves at a time: where the paper evicts from the main queue and
at once from the small one, too, the second waits until it has to make room.
"""

from collections import OrderedDict

from tiers.keys import BlockKey
from tiers.node import Copy
from tiers.policies.base import Exit
from tiers.policies.queues import Entry, QueuedPolicy

SMALL, MAIN = 0, 1
MAX_USES = 3
USES_FOR_MAIN = 2


class S3Fifo(QueuedPolicy):
    """`_ghosts` are keys, oldest first: at most nine for ten blocks that the tier may hold."""

    __slots__ = ("_capacity", "_ghosts")

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__()
        self._capacity = capacity_blocks
        self._ghosts: OrderedDict[BlockKey, None] = OrderedDict()

    def touch(self, copy: Copy) -> None:
        entry = self._queues.get(copy)
        if entry is None:
            self._queues.add(copy, MAIN if copy.node.key in self._ghosts else SMALL)
            self._ghosts.pop(copy.node.key, None)
            return
        entry.num_uses = min(entry.num_uses + 1, MAX_USES)
        self._queues.let_go(copy, entry)

    def remove(self, copy: Copy, leave: Exit) -> None:
        entry = self._queues.drop(copy)
        if entry is None or leave is Exit.DROPPED or (leave is Exit.EVICTED and entry.queue == MAIN):
            return
        self._ghosts[copy.node.key] = None
        self._trim()

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        small, main = self._queues.sizes
        if small * 10 >= small + main:
            return self._from_small() or self._from_main()
        return self._from_main() or self._from_small()

    def resize(self, capacity_blocks: int) -> None:
        self._capacity = capacity_blocks
        self._trim()

    def check(self) -> None:
        self._queues.check()
        assert len(self._ghosts) <= self._max_ghosts, "more keys are remembered than there may be"

    @property
    def _max_ghosts(self) -> int:
        return self._capacity * 9 // 10

    def _from_small(self) -> Copy | None:
        while (oldest := self._queues.oldest(SMALL)) is not None:
            copy, entry = oldest
            if entry.num_uses < USES_FOR_MAIN:
                return copy
            self._to_main(copy, entry, 0)
            small, main = self._queues.sizes
            if main * 10 > 9 * (small + main) and (victim := self._from_main()) is not None:
                return victim
        return None

    def _from_main(self) -> Copy | None:
        while (oldest := self._queues.oldest(MAIN)) is not None:
            copy, entry = oldest
            if not entry.num_uses:
                return copy
            self._to_main(copy, entry, entry.num_uses - 1)
        return None

    def _to_main(self, copy: Copy, entry: Entry, num_uses: int) -> None:
        self._queues.move(copy, entry, MAIN)
        entry.num_uses = num_uses

    def _trim(self) -> None:
        while len(self._ghosts) > self._max_ghosts:
            self._ghosts.popitem(last=False)
