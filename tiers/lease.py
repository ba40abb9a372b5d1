"""What a request holds of the gpu tier while it runs. Knows nothing about other requests."""

from enum import StrEnum

from tiers.keys import BlockKey
from tiers.names import Tier
from tiers.node import Copy


class LeaseState(StrEnum):
    """FAILED: a block could not be loaded and is gone; release the lease and acquire again."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Lease:
    """`block_ids` are gpu slots in prefix order; `hit_tiers` says, for each block that is read, where it was found.

    `skipped_tiers` says so for the blocks after those that were found, too, and are cheaper to compute than to load.

    `copies[i]` is the cached block behind `block_ids[i]`, or None while it is the request's own. Where two requests
    compute the same block, the second keeps its own slot and reads along with the first one's copy.
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
    )

    def __init__(self, origins: dict[BlockKey, Tier]) -> None:
        self.block_ids: list[int] = []
        self.hit_tiers: list[Tier] = []
        self.skipped_tiers: list[Tier] = []
        self.copies: list[Copy | None] = []
        self.origins = origins
        self.num_pending = 0
        self.has_failed = False
        self.is_released = False

    @property
    def state(self) -> LeaseState:
        if self.has_failed:
            return LeaseState.FAILED
        return LeaseState.LOADING if self.num_pending else LeaseState.READY

    def private_slots(self) -> list[int]:
        pairs = zip(self.block_ids, self.copies, strict=True)
        return [slot for slot, copy in pairs if copy is None or copy.slot != slot]
