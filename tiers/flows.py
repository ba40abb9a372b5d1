"""How blocks came into one tier and how they left it, and which of those that it dropped were computed again.

Knows nothing about why. What came in minus what left is what lies there, at any moment (`audit` holds it).
"""

from tiers.keys import BlockKey
from tiers.names import TIERS, Tier

# Where blocks come from besides other tiers: the model, and what a tier had before this engine knew of it.
COMPUTED, FOUND = "computed", "found"
# Where blocks go besides other tiers: another tier still has it, or none, so that it has to be computed again.
FREED, DROPPED = "freed", "dropped"
# 100,000 keys of 16 bytes take about 10 MB in their sets.
MAX_DROPPED_KEYS = 100_000


def origins_of(tier: Tier) -> tuple[str, ...]:
    """Every way into the tier. Blocks go down from any faster tier, and up to gpu only."""
    if tier is Tier.GPU:
        return (COMPUTED, *TIERS[1:])
    faster = TIERS[: TIERS.index(tier)]
    return faster if tier is Tier.CPU else (FOUND, *faster)


def ways_out_of(tier: Tier) -> tuple[str, ...]:
    """Every way out of the tier."""
    slower = TIERS[TIERS.index(tier) + 1 :]
    up = () if tier is Tier.GPU else (Tier.GPU,)
    return (*up, *slower, FREED, DROPPED)


class Flows:
    """Blocks by where they came from and where they went. A copy that stays counts in the tier it was copied to only.

    `num_new` came from no tier, `came` from those; `went` to those, `num_freed` and `num_dropped` to none.
    `num_missed` were computed again soon after they had been dropped here. Plain numbers that `Level` adds to itself: a
    call for each would take longer than the addition.
    """

    __slots__ = ("_tier", "came", "num_dropped", "num_freed", "num_missed", "num_new", "went")

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self.came = {origin: 0 for origin in TIERS if origin in origins_of(tier)}
        self.went = {way: 0 for way in TIERS if way in ways_out_of(tier)}
        self.num_new = self.num_freed = self.num_dropped = self.num_missed = 0

    @property
    def entered(self) -> dict[str, int]:
        new = {str(origin): self.num_new for origin in origins_of(self._tier) if origin in (COMPUTED, FOUND)}
        return new | {str(origin): count for origin, count in self.came.items()}

    @property
    def left(self) -> dict[str, int]:
        return {str(way): count for way, count in self.went.items()} | {
            FREED: self.num_freed,
            DROPPED: self.num_dropped,
        }

    @property
    def num_there(self) -> int:
        return sum(self.entered.values()) - sum(self.left.values())


class DroppedKeys:
    """Keys of what a tier dropped last: what it would about have kept at twice the size.

    The ghost list of ARC (Megiddo and Modha, FAST 2003), used for counting only. Two generations of half the tier's
    blocks each, `new` and `old`, so that remembering one is one insertion into a set: the last half is known for
    certain, what is older than a whole is forgotten.
    """

    __slots__ = ("_size", "new", "old")

    def __init__(self, num_blocks: int) -> None:
        self.new: set[BlockKey] = set()
        self.old: set[BlockKey] = set()
        self.resize(num_blocks)

    def __len__(self) -> int:
        return len(self.new) + len(self.old)

    def resize(self, num_blocks: int) -> None:
        self._size = min(num_blocks, MAX_DROPPED_KEYS) // 2
        if max(len(self.new), len(self.old)) > self._size:
            self.new, self.old = set(), set()

    def add(self, key: BlockKey) -> None:
        if len(self.new) >= self._size:
            if not self._size:
                return
            self.old, self.new = self.new, set()
        self.new.add(key)

    def forget(self, key: BlockKey) -> None:
        self.new.discard(key)
        self.old.discard(key)
