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

    `num_missed` were computed again soon after they had been dropped here.
    """

    __slots__ = ("_tier", "entered", "left", "num_missed")

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self.entered = dict.fromkeys(map(str, origins_of(tier)), 0)
        self.left = dict.fromkeys(map(str, ways_out_of(tier)), 0)
        self.num_missed = 0

    def enter(self, origin: Tier | None) -> None:
        """None: it came from no tier."""
        self.entered[origin or (COMPUTED if self._tier is Tier.GPU else FOUND)] += 1

    def leave(self, way: str) -> None:
        self.left[way] += 1

    @property
    def num_there(self) -> int:
        return sum(self.entered.values()) - sum(self.left.values())


class DroppedKeys:
    """Keys of what a tier dropped last: what it would about have kept at twice the size.

    The ghost list of ARC (Megiddo and Modha, FAST 2003), used for counting only. Two generations of half the tier's
    blocks each, so that remembering one is one insertion into a set: the last half is known for certain, what is older
    than a whole is forgotten.
    """

    __slots__ = ("_new", "_old", "_size")

    def __init__(self, num_blocks: int) -> None:
        self._new: set[BlockKey] = set()
        self._old: set[BlockKey] = set()
        self.resize(num_blocks)

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def resize(self, num_blocks: int) -> None:
        self._size = min(num_blocks, MAX_DROPPED_KEYS) // 2
        if max(len(self._new), len(self._old)) > self._size:
            self._new, self._old = set(), set()

    def add(self, key: BlockKey) -> None:
        if len(self._new) >= self._size:
            if not self._size:
                return
            self._old, self._new = self._new, set()
        self._new.add(key)

    def take(self, key: BlockKey) -> bool:
        """Whether it was dropped recently; from now on it was not."""
        for keys in (self._new, self._old):
            if key in keys:
                keys.discard(key)
                return True
        return False
