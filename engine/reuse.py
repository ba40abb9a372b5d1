"""What the reuse curve hears of a request's life: asked for, blocks filled, blocks given back. Off is an object, too.

Knows nothing about how depths are counted (tiers/whatif) or who is told.
"""

from typing import Protocol

from engine.sequence import Sequence
from tiers import BlockKey
from tiers.whatif.shards import Sample
from tiers.whatif.shards_buckets import ReuseCounts
from tiers.whatif.shards_curve import ReuseCurve


class Reuse(Protocol):
    """Called on the stepping thread; `counts` and `sample` between two changes of the engine's state."""

    def admitted(self, sequence: Sequence) -> None:
        """Its prompt is counted: called once a request."""
        ...

    def filled(self, keys: list[BlockKey]) -> None:
        """Blocks that follow each other are computed."""
        ...

    def given_back(self, sequence: Sequence) -> None:
        """Called while it still knows what it had."""
        ...

    def counts(self) -> ReuseCounts: ...
    def sample(self) -> Sample | None:
        """What is to outlive a restart."""
        ...


class NoReuse:
    """Switched off."""

    def admitted(self, sequence: Sequence) -> None:
        pass

    def filled(self, keys: list[BlockKey]) -> None:
        pass

    def given_back(self, sequence: Sequence) -> None:
        pass

    def counts(self) -> ReuseCounts:
        return ReuseCounts()

    def sample(self) -> Sample | None:
        return None


class LiveReuse:
    """Counts prompts in `curve`."""

    def __init__(self, curve: ReuseCurve) -> None:
        self._curve = curve

    def admitted(self, sequence: Sequence) -> None:
        """What no block can serve (the last token, a block that is not full, a cache that is off) is never a hit."""
        keys = sequence.keys[: (sequence.num_prompt - 1) // sequence.block_size]
        self._curve.ask(keys, sequence.num_prompt)

    def filled(self, keys: list[BlockKey]) -> None:
        self._curve.touch(keys)

    def given_back(self, sequence: Sequence) -> None:
        self._curve.touch(sequence.keys[: sequence.num_registered])

    def counts(self) -> ReuseCounts:
        return self._curve.counts()

    def sample(self) -> Sample | None:
        return self._curve.sample()
