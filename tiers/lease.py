"""What a request holds of the gpu tier while it runs. Knows nothing about other requests."""

from array import array
from enum import StrEnum

from tiers.books.books import Books
from tiers.books.layout import NONE, SLOT
from tiers.keys import BlockKey
from tiers.names import Tier


class LeaseState(StrEnum):
    """FAILED: a block could not be loaded and is gone; release the lease and acquire again."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Lease:
    """`block_ids` are gpu slots in prefix order; `hit_tiers` says, for each block that is read, where it was found.

    `skipped_tiers` says so for the blocks after those that were found, too, and are cheaper to compute than to load.

    `copies[i]` is the row of the cached block behind `block_ids[i]`, or NONE while it is the request's own. Where
    two requests compute the same block, the second keeps its own slot and reads along with the first one's copy. What
    is registered is `tenant`'s.
    """

    __slots__ = (
        "block_ids",
        "copies",
        "has_failed",
        "hit_tiers",
        "is_released",
        "num_pending",
        "origins",
        "skipped_tiers",
        "tenant",
    )

    def __init__(self, origins: dict[BlockKey, Tier], tenant: str) -> None:
        self.tenant = tenant
        self.block_ids: array[int] = array("q")
        self.hit_tiers: list[Tier] = []
        self.skipped_tiers: list[Tier] = []
        self.copies: array[int] = array("i")
        self.origins = origins
        self.num_pending = 0
        self.has_failed = False
        self.is_released = False

    @property
    def state(self) -> LeaseState:
        if self.has_failed:
            return LeaseState.FAILED
        return LeaseState.LOADING if self.num_pending else LeaseState.READY

    def private_slots(self, books: Books) -> list[int]:
        pairs = zip(self.block_ids, self.copies, strict=True)
        return [slot for slot, copy in pairs if copy == NONE or books.copies[copy, SLOT] != slot]
