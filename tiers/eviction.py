"""The order in which one tier's blocks leave it, as Python sees it. Knows nothing about other tiers, bytes or how
blocks move; which policy decides is the tier's (`policies`).
"""

from enum import IntEnum

from tiers.books import layout, orders, steps
from tiers.books.books import Books
from tiers.books.layout import ENTERED, FLAGS, HELD, NONE, NUM_HELD, SIZES
from tiers.keys import KEY_BYTES, BlockKey, packed
from tiers.names import Policy
from tiers.node import Copy, copies
from tiers.policies.checks import check

NO_KEY = packed([bytes(KEY_BYTES)])[0][:0]
CODES = {Policy.LRU: layout.LRU, Policy.S3FIFO: layout.S3FIFO, Policy.ARC: layout.ARC}


class Exit(IntEnum):
    """Why a block is no longer in the tier: it made room, it was read and moved up, or another reason."""

    EVICTED = layout.EVICTED
    PROMOTED = layout.PROMOTED
    DROPPED = layout.DROPPED


class Order:
    """The blocks of a tier that a lease has let go at least once, in some order of leaving.

    A prefix is touched from its tail to its head. Every operation takes constant time, amortised, but for those that
    say they walk everything. What leaves the tier leaves its order with it (`Level.remove`).
    """

    __slots__ = ("_books", "_rank")

    def __init__(self, books: Books, rank: int) -> None:
        self._books = books
        self._rank = rank

    def __len__(self) -> int:
        """Blocks that nobody reads."""
        level = self._books.tables.levels[self._rank]
        return int(level[SIZES] + level[SIZES + 1] - level[NUM_HELD])

    def __contains__(self, copy: Copy) -> bool:
        """Whether nobody reads the block."""
        return bool(self._books.copies[copy.row, FLAGS] & (ENTERED | HELD) == ENTERED)

    def touch(self, copy: Copy, *, is_noted: bool = True) -> None:
        """The block was used, or is new here, and nobody reads it now. Noted: by this side, so that others are told."""
        steps.touch(*self._books.tables, copy.row, is_noted)

    def enter(self, copy: Copy) -> None:
        """The block came down from a faster tier, without having been used, and nobody reads it."""
        steps.enter(*self._books.tables, copy.row)

    def hold(self, copy: Copy) -> None:
        """The block is being read: it stays until it is touched."""
        steps.hold(*self._books.tables, copy.row)

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        """The block to leave next, to make room for `incoming` where that is known; None if none may leave.

        Asked again before anything else has happened, it says the same.
        """
        return self._victim(incoming, NONE, NONE)

    def victim_of(self, tenant: int) -> Copy | None:
        """As above, of one tenant's blocks, where the tier has a quota."""
        return self._victim(b"", tenant, NONE)

    def victim_for(self, tenant: int, num_coming: int, incoming: BlockKey = b"") -> Copy | None:
        """As above, for blocks of the tenant, so many of which do not count yet: where it would have more than it may,
        its own leave first.
        """
        return self._victim(incoming, tenant, num_coming)

    def surplus(self) -> Copy | None:
        """A block that may leave of a tenant that has more than it may."""
        row = steps.surplus(*self._books.tables, self._rank)
        return None if row == NONE else Copy(self._books, row)

    def _victim(self, incoming: BlockKey, tenant: int, num_coming: int) -> Copy | None:
        key = packed([incoming])[0] if incoming else NO_KEY
        row = steps.victim(*self._books.tables, self._rank, key, tenant, num_coming)
        return None if row == NONE else Copy(self._books, row)

    def follow(self, policy: Policy) -> None:
        """Another policy decides: every block is new to it, in the order in which they would have left. Walks all."""
        blocks = self.oldest_first()
        steps.replace_policy(*self._books.tables, self._rank, CODES[policy])
        for copy in blocks:
            self.touch(copy, is_noted=False)

    def oldest_first(self) -> list[Copy]:
        """Blocks that nobody reads, about in the order in which they would leave, children first. Walks everything."""
        return copies(self._books, orders.oldest_first(*self._books.tables, self._rank))

    def check(self) -> None:
        """Raises AssertionError with a sentence if the policy's books disagree. Walks everything."""
        check(self._books, self._rank)
