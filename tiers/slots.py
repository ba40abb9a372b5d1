"""Which slots of the gpu pool are free, lowest first, under a limit that may change while slots are in use.

Knows nothing about what is in a slot.
"""

import numpy as np

from tiers.books.bitmap import (
    LIMIT,
    NUM_COUNTS,
    NUM_FREE,
    NUM_GROUPS,
    NUM_LOW_FREE,
    NUM_TOTAL,
    empty_words,
    put_many,
    put_one,
    take_one,
)
from tiers.books.compiled import Ints64, Words
from tiers.books.layout import NONE

SLOTS_A_GROUP = 4096


class Slots:
    """`limit` is how many may be in use. Lowering it retires slots beyond it as they come back."""

    __slots__ = ("_told", "counts", "words")

    def __init__(self, num_total: int) -> None:
        self.counts = np.zeros(NUM_COUNTS, np.int64)
        self._told = self.counts.data
        self.words: Words = empty_words(0)
        self.counts[LIMIT] = num_total
        self.grow(num_total)

    @property
    def num_total(self) -> int:
        return self._told[NUM_TOTAL]

    @property
    def limit(self) -> int:
        return self._told[LIMIT]

    @property
    def num_in_use(self) -> int:
        return self._told[NUM_TOTAL] - self._told[NUM_FREE]

    @property
    def num_free(self) -> int:
        return max(0, min(self._told[NUM_LOW_FREE], self.limit - self.num_in_use))

    @property
    def is_settled(self) -> bool:
        """No slot beyond the limit is in use."""
        return self._told[NUM_FREE] - self._told[NUM_LOW_FREE] == self.num_total - self.limit

    def take(self) -> int | None:
        slot = take_one(self.words, self.counts, True)
        return None if slot == NONE else slot

    def take_below_limit(self) -> int | None:
        """Whatever the number in use: for a block that gives its own slot back."""
        slot = take_one(self.words, self.counts, False)
        return None if slot == NONE else slot

    def give(self, slot: int) -> None:
        put_one(self.words, self.counts, slot)

    def set_limit(self, limit: int) -> None:
        """The pool must have that many slots already: see `grow`."""
        self.counts[LIMIT] = limit
        self.counts[NUM_LOW_FREE] = np.count_nonzero(self._free_slots() < limit)

    def grow(self, num_total: int) -> None:
        before = self.num_total
        if num_total <= before:
            return
        free = self._free_slots()
        num_groups = -(-num_total // SLOTS_A_GROUP)
        if num_groups > self.counts[NUM_GROUPS]:
            self.words = empty_words(num_groups)
            self.counts[[NUM_GROUPS, NUM_FREE, NUM_LOW_FREE]] = num_groups, 0, 0
            put_many(self.words, self.counts, free)
        put_many(self.words, self.counts, np.arange(before, num_total))
        self.counts[NUM_TOTAL] = num_total

    def trim(self) -> None:
        """Forget the slots beyond the limit, all of which must be free."""
        assert self.is_settled, "a slot beyond the limit is in use"
        free = self._free_slots()
        self.words[:] = 0
        self.counts[[NUM_FREE, NUM_LOW_FREE, NUM_TOTAL]] = 0, 0, self.limit
        put_many(self.words, self.counts, free[free < self.limit])

    def _free_slots(self) -> Ints64:
        leaves = self.words[: self.counts[NUM_GROUPS] * 64].astype("<u8")
        return np.flatnonzero(np.unpackbits(leaves.view(np.uint8), bitorder="little"))

    def check(self, in_use: set[int]) -> None:
        """`in_use` is what the owners hold; together with the free ones it must be every slot, once."""
        free = set(self._free_slots().tolist())
        assert len(free) == self._told[NUM_FREE], "a slot is free twice"
        assert not free & in_use, f"slots {sorted(free & in_use)} are free and in use"
        assert len(free) + len(in_use) == self.num_total, "free and used slots are not all slots"
        assert self._told[NUM_LOW_FREE] == sum(slot < self.limit for slot in free), "the number of free slots is off"
