"""What a request holds: gpu slots in prefix order. Knows nothing about how they are filled or given back."""

from enum import StrEnum

from tiers.index import Copy
from tiers.names import Tier


class LeaseState(StrEnum):
    """LOADING: copies to gpu are under way. FAILED: one of them failed; release the lease and acquire again."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Lease:
    """Blocks of one request. `hit_tiers[i]` is where block i was when it was first matched for this request."""

    __slots__ = ("block_ids", "copies", "hit_tiers", "loading", "owns_slot", "state")

    def __init__(self) -> None:
        self.block_ids: list[int] = []
        self.hit_tiers: list[Tier] = []
        # By block: the cached copy that the lease pins, if any; and whether the slot goes back to the pool at the end.
        self.copies: list[Copy | None] = []
        self.owns_slot: list[bool] = []
        self.loading: set[Copy] = set()
        self.state = LeaseState.READY

    def add(self, slot: int, copy: Copy | None) -> None:
        self.block_ids.append(slot)
        self.copies.append(copy)
        self.owns_slot.append(copy is None)

    def wait_for(self, copy: Copy) -> None:
        self.loading.add(copy)
        self.state = LeaseState.LOADING

    def arrived(self, copy: Copy) -> None:
        self.loading.discard(copy)
        if not self.loading and self.state is LeaseState.LOADING:
            self.state = LeaseState.READY

    def failed(self) -> None:
        self.state = LeaseState.FAILED
