"""Which slots of the gpu pool are free, lowest first, under a limit that may change while slots are in use.

Knows nothing about what is in a slot.
"""

import heapq


class Slots:
    """`limit` is how many may be in use. Lowering it retires slots beyond it as they come back."""

    __slots__ = ("_free", "_num_low_free", "limit", "num_total")

    def __init__(self, num_total: int) -> None:
        self.num_total = num_total
        self.limit = num_total
        self._free = list(range(num_total))
        self._num_low_free = num_total

    @property
    def num_in_use(self) -> int:
        return self.num_total - len(self._free)

    @property
    def num_free(self) -> int:
        return max(0, min(self._num_low_free, self.limit - self.num_in_use))

    @property
    def is_settled(self) -> bool:
        """No slot beyond the limit is in use."""
        return len(self._free) - self._num_low_free == self.num_total - self.limit

    def take(self) -> int | None:
        return self.take_below_limit() if self.num_free else None

    def take_below_limit(self) -> int | None:
        """Whatever the number in use: for a block that gives its own slot back."""
        if not self._num_low_free:
            return None
        self._num_low_free -= 1
        return heapq.heappop(self._free)

    def give(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
        self._num_low_free += slot < self.limit

    def set_limit(self, limit: int) -> None:
        """The pool must have that many slots already: see `grow`."""
        self.limit = limit
        self._num_low_free = sum(slot < limit for slot in self._free)

    def grow(self, num_total: int) -> None:
        for slot in range(self.num_total, num_total):
            heapq.heappush(self._free, slot)
        self.num_total = max(num_total, self.num_total)

    def trim(self) -> None:
        """Forget the slots beyond the limit, all of which must be free."""
        assert self.is_settled, "a slot beyond the limit is in use"
        self._free = [slot for slot in self._free if slot < self.limit]
        heapq.heapify(self._free)
        self.num_total = self.limit

    def check(self, in_use: set[int]) -> None:
        """`in_use` is what the owners hold; together with the free ones it must be every slot, once."""
        free = set(self._free)
        assert len(free) == len(self._free), "a slot is free twice"
        assert not free & in_use, f"slots {sorted(free & in_use)} are free and in use"
        assert len(free) + len(in_use) == self.num_total, "free and used slots are not all slots"
        assert self._num_low_free == sum(slot < self.limit for slot in free), "the number of free slots is off"
