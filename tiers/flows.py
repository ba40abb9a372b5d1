"""How blocks came into one tier and how they left it, and which of those that it dropped were computed again.

Knows nothing about why. What came in minus what left is what lies there, at any moment (`audit` holds it).
"""

from tiers.books.books import Books
from tiers.books.layout import (
    CAME,
    DROPS,
    LISTS,
    NUM_DROPPED,
    NUM_FREED,
    NUM_MISSED,
    NUM_NEW,
    WENT,
)
from tiers.keys import BlockKey
from tiers.names import TIERS, Tier
from tiers.node import nodes
from tiers.policies.checks import remembered

# Where blocks come from besides other tiers: the model, and what a tier had before this engine knew of it.
COMPUTED, FOUND = "computed", "found"
# Where blocks go besides other tiers: another tier still has it, or none, so that it has to be computed again.
FREED, DROPPED = "freed", "dropped"
# 100,000 memories and the nodes that they keep take about 10 MB.
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


def max_drops(capacity_blocks: int) -> int:
    """Of one generation."""
    return min(capacity_blocks, MAX_DROPPED_KEYS) // 2


class Flows:
    """Blocks by where they came from and where they went. A copy that stays counts in the tier it was copied to only.

    `num_missed` were computed again soon after they had been dropped here. The numbers are the tier's, in the tables.
    """

    __slots__ = ("_row", "_tier")

    def __init__(self, tier: Tier, row: memoryview) -> None:
        self._tier = tier
        self._row = row

    @property
    def num_missed(self) -> int:
        return int(self._row[NUM_MISSED])

    @property
    def entered(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for origin in origins_of(self._tier):
            is_new = origin in (COMPUTED, FOUND)
            counts[str(origin)] = self._row[NUM_NEW] if is_new else self._row[CAME + TIERS.index(Tier(origin))]
        return counts

    @property
    def left(self) -> dict[str, int]:
        ways = [way for way in TIERS if way in ways_out_of(self._tier)]
        counts = {str(way): self._row[WENT + TIERS.index(way)] for way in ways}
        return counts | {FREED: self._row[NUM_FREED], DROPPED: self._row[NUM_DROPPED]}

    @property
    def num_there(self) -> int:
        return sum(self.entered.values()) - sum(self.left.values())


class Dropped:
    """What a tier dropped last: what it would about have kept at twice the size.

    The ghost list of ARC (Megiddo and Modha, FAST 2003), used for counting only. Two generations of half the tier's
    blocks each: the last half is known for certain, what is older than a whole is forgotten.
    """

    __slots__ = ("_books", "_rank")

    def __init__(self, books: Books, rank: int) -> None:
        self._books = books
        self._rank = rank

    def __len__(self) -> int:
        level = self._books.tables.levels[self._rank]
        return sum(int(level[LISTS + 3 * (DROPS + number) + 2]) for number in (0, 1))

    def __contains__(self, key: BlockKey) -> bool:
        """Walks everything."""
        rows = [row for number in (DROPS, DROPS + 1) for row in remembered(self._books, self._rank, number)]
        return any(node.key == key for node in nodes(self._books, rows))
