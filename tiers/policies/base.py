"""What an eviction policy of one tier does. Knows nothing about other tiers, bytes or how blocks move.

Every policy is closed under prefix: a block leaves after the blocks that follow it in that tier, so what a tier holds
can always be found from the start of a prompt. What is being read never leaves.
"""

from enum import Enum
from typing import Protocol

from tiers.keys import BlockKey
from tiers.node import Copy


class Exit(Enum):
    """Why a block is no longer in the tier: it made room, it was read and moved up, or another reason."""

    EVICTED = "evicted"
    PROMOTED = "promoted"
    DROPPED = "dropped"


class EvictionPolicy(Protocol):
    """The blocks of a tier that a lease has let go at least once, in some order of leaving.

    A prefix is touched from its tail to its head. Every operation takes constant time, amortised, but for those that
    say they walk everything.
    """

    def __len__(self) -> int:
        """Blocks that nobody reads."""
        ...

    def __contains__(self, copy: Copy) -> bool:
        """Whether nobody reads the block."""
        ...

    def touch(self, copy: Copy) -> None:
        """The block was used, or is new here, and nobody reads it now."""
        ...

    def enter(self, copy: Copy) -> None:
        """The block came down from a faster tier, without having been used, and nobody reads it."""
        ...

    def hold(self, copy: Copy) -> None:
        """The block is being read: it stays until it is touched."""
        ...

    def remove(self, copy: Copy, leave: Exit) -> None:
        """The block has left the tier; one that was not there, or is held, too."""
        ...

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        """The block to leave next, to make room for `incoming` where that is known; None if none may leave.

        Asked again before anything else has happened, it says the same.
        """
        ...

    def resize(self, capacity_blocks: int) -> None:
        """How many blocks the tier may hold from now on."""
        ...

    def oldest_first(self) -> list[Copy]:
        """Blocks that nobody reads, about in the order in which they would leave, children first. Walks everything."""
        ...

    def check(self) -> None:
        """Raises AssertionError with a sentence if the policy's books disagree. Walks everything."""
        ...
