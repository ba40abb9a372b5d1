"""The reuse curve of live traffic: prompt tokens by the capacity of one LRU stack that would have served them.

One thread calls it as requests come, blocks fill and requests end; constant memory, see `SampledStack`. Knows nothing
about requests, tiers or who reads the counts.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tiers.books.compiled import Ints64
from tiers.keys import KEY_BYTES, BlockKey
from tiers.whatif.shards import MAX_BLOCKS, Sample, SampledStack
from tiers.whatif.shards_buckets import LARGEST_TOKENS, CapacityBuckets, ReuseCounts, coarse_bounds


class ReuseCurve:
    """Blocks of `block_size` tokens by their keys; at most `max_blocks` of them are remembered."""

    def __init__(self, block_size: int, max_blocks: int = MAX_BLOCKS) -> None:
        self._block_size = block_size
        self._stack = SampledStack(max_blocks, deepest=LARGEST_TOKENS // block_size)
        self._buckets = CapacityBuckets(block_size)
        self._parts: dict[str, CapacityBuckets] = {}

    def ask(self, keys: Sequence[BlockKey], num_tokens: int, part: str = "") -> None:
        """A prompt of `num_tokens` that may reuse the blocks `keys`, from its first on: counts it.

        Once for all, and once more, coarser, for the `part` that it belongs to: whose it is changes nothing of the
        stack, which all share. There are as many parts as names that were ever given.

        Blocks that are there become the newest, since a request holds them; the others come in as they are computed:
        two requests that ask for the same at once both compute it.
        """
        halves = _halves(keys)
        found = self._stack.look_up(halves)
        for buckets in (self._buckets, self._part(part)):
            buckets.add(found, self._stack.rate, num_tokens - len(keys) * self._block_size)
        self._stack.touch(halves, only_known=True)

    def touch(self, keys: Sequence[BlockKey]) -> None:
        """Blocks that follow each other are filled, or given back: they become the newest, the last one first."""
        self._stack.touch(_halves(keys))

    def counts(self) -> ReuseCounts:
        return self._told(self._buckets)

    def parts(self, names: Iterable[str]) -> dict[str, ReuseCounts]:
        """Of each of these; nothing but zeros where it never asked."""
        return {name: self._told(self._part(name)) for name in names}

    def _part(self, name: str) -> CapacityBuckets:
        if name not in self._parts:
            self._parts[name] = CapacityBuckets(self._block_size, coarse_bounds(self._block_size))
        return self._parts[name]

    def _told(self, buckets: CapacityBuckets) -> ReuseCounts:
        return ReuseCounts(buckets.bounds, buckets.counts(), self._stack.rate)

    def sample(self) -> Sample:
        return self._stack.sample()

    def restore(self, sample: Sample) -> None:
        """Before the first request."""
        self._stack.restore(sample)

    def check(self) -> None:
        """Walks everything."""
        self._stack.check()
        for buckets in (self._buckets, *self._parts.values()):
            buckets.check()
        parts = [sum(part.counts()) for part in self._parts.values()]
        assert sum(parts) == sum(self._buckets.counts()), "the parts of the reuse curve are not the whole"


def _halves(keys: Sequence[BlockKey]) -> Ints64:
    """Half of each key: it is a hash, and that two of a billion blocks share 64 bits of it has a chance of 3 %."""
    return np.frombuffer(b"".join(keys), np.int64)[:: KEY_BYTES // 8].copy()
