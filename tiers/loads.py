"""Blocks that come up from one tier to gpu in one operation. Knows nothing about who moves them or who waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tiers.books.compiled import Ints32
from tiers.host import HostSlot
from tiers.keys import BlockKey
from tiers.lease import Lease
from tiers.level import Level


@dataclass(slots=True)
class Loads:
    """Out of `level`, for `lease`. Block by block: its key, its copy in gpu and the one that is read (rows), its slot.

    `hosts`, one for each block or none at all, are where its bytes lie in host memory. `errors` are of single blocks.
    """

    lease: Lease
    level: Level
    keys: Sequence[BlockKey]
    copies: Ints32
    sources: Ints32
    slots: Sequence[int]
    hosts: Sequence[HostSlot]
    errors: dict[int, Exception] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.slots)

    def part(self, start: int, end: int) -> "Loads":
        """For an operation of its own."""
        own = slice(start, end)
        return Loads(
            self.lease,
            self.level,
            self.keys[own],
            self.copies[own],
            self.sources[own],
            self.slots[own],
            self.hosts[own],
        )


Loaded = Callable[[Loads, float], None]


def tell(loads: Loads, done: Loaded, error: Exception | None, seconds: float) -> None:
    """What the operation came to; its own error is one of every block."""
    if error is not None:
        loads.errors = dict.fromkeys(range(len(loads)), error)
    done(loads, seconds)
