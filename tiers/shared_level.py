"""The books of a tier that other engines fill and empty, too. Knows nothing about servers.

What others store is counted here and may be more than this side's limit, or a tenant's share of it; only what this side
stores makes others leave.
"""

from tiers.books import orders
from tiers.books.books import Books
from tiers.books.layout import KEEPS_NOTES
from tiers.config import TierChanges, TierConfig
from tiers.keys import BlockKey
from tiers.level import Level
from tiers.node import Copy, nodes


class SharedLevel(Level):
    """`is_storing` from the moment this side has added a block until the tier is within its limit again.

    `num_switched_off` counts how often its size became 0: then the books forget what lies there.
    """

    is_shared = True
    is_storing = False
    num_switched_off = 0

    def __init__(self, books: Books, rank: int, config: TierConfig, block_bytes: int) -> None:
        super().__init__(books, rank, config, block_bytes)
        self._row[KEEPS_NOTES] = 1

    def resize(self, capacity_bytes: int) -> None:
        super().resize(capacity_bytes)
        self.num_switched_off += not self.capacity_blocks

    @property
    def is_over(self) -> bool:
        return (self.is_storing or self.is_shrinking) and super().is_over

    def configure(self, changes: TierChanges) -> None:
        super().configure(changes)
        self.is_storing |= "tenant_quota" in changes

    @property
    def is_beyond(self) -> bool:
        return (self.is_storing or self.is_shrinking) and super().is_beyond

    def expect(self) -> None:
        super().expect()
        self.is_storing = True

    def rebalanced(self) -> None:
        super().rebalanced()
        self.is_storing &= self.is_over or self.is_behind

    def used_elsewhere(self, copy: Copy) -> None:
        """Others have used the block; nobody here reads it now."""
        self.eviction.touch(copy, is_noted=False)

    def take_used(self) -> list[BlockKey]:
        """Keys of what was used here since the last call, oldest first, as far as it is stored."""
        rows = orders.take_notes(*self._books.tables, self.rank)
        return [node.key for node in nodes(self._books, rows)]
