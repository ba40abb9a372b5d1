"""What the reuse curve hears of a request's life: asked for, blocks filled, blocks given back. Off is an object, too.

Knows nothing about how depths are counted (tiers/whatif) or who is told.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from engine.sequence import Sequence
from tiers import BlockKey
from tiers.whatif.shards import Sample
from tiers.whatif.shards_buckets import ReuseCounts
from tiers.whatif.shards_curve import ReuseCurve


class Reuse(Protocol):
    """Called on the stepping thread; `counts` and `sample` between two changes of the engine's state."""

    def admitted(self, sequence: Sequence, tenant: str) -> None:
        """Its prompt is counted, for all and for the tenant of that name: called once a request."""
        ...

    def filled(self, keys: list[BlockKey]) -> None:
        """Blocks that follow each other are computed."""
        ...

    def given_back(self, sequence: Sequence) -> None:
        """Called while it still knows what it had."""
        ...

    def counts(self) -> ReuseCounts: ...
    def tenant_counts(self, names: Collection[str]) -> Mapping[str, ReuseCounts]:
        """Of tenants by these names, at fewer capacities; together they are all tokens."""
        ...

    def sample(self) -> Sample | None:
        """What is to outlive a restart."""
        ...


class NoReuse:
    """Switched off."""

    def admitted(self, sequence: Sequence, tenant: str) -> None:
        pass

    def filled(self, keys: list[BlockKey]) -> None:
        pass

    def given_back(self, sequence: Sequence) -> None:
        pass

    def counts(self) -> ReuseCounts:
        return ReuseCounts()

    def tenant_counts(self, names: Collection[str]) -> Mapping[str, ReuseCounts]:
        return {}

    def sample(self) -> Sample | None:
        return None


class LiveReuse:
    """Counts prompts in `curve`."""

    def __init__(self, curve: ReuseCurve) -> None:
        self._curve = curve

    def admitted(self, sequence: Sequence, tenant: str) -> None:
        """What no block can serve (the last token, a block that is not full, a cache that is off) is never a hit."""
        keys = sequence.keys[: (sequence.num_prompt - 1) // sequence.block_size]
        self._curve.ask(keys, sequence.num_prompt, tenant)

    def filled(self, keys: list[BlockKey]) -> None:
        self._curve.touch(keys)

    def given_back(self, sequence: Sequence) -> None:
        self._curve.touch(sequence.keys[: sequence.num_registered])

    def counts(self) -> ReuseCounts:
        return self._curve.counts()

    def tenant_counts(self, names: Collection[str]) -> Mapping[str, ReuseCounts]:
        return self._curve.parts(names)

    def sample(self) -> Sample | None:
        return self._curve.sample()
