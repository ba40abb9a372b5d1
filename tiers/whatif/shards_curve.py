"""The reuse curve of live traffic: prompt tokens by the capacity of one LRU stack that would have served them.

One thread calls it as requests come, blocks fill and requests end; constant memory, see `SampledStack`. Knows nothing
about requests, tiers or who reads the counts.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books.compiled import Ints64
from tiers.keys import KEY_BYTES, BlockKey
from tiers.whatif.shards import MAX_BLOCKS, Sample, SampledStack
from tiers.whatif.shards_buckets import LARGEST_TOKENS, CapacityBuckets, ReuseCounts


class ReuseCurve:
    """Blocks of `block_size` tokens by their keys; at most `max_blocks` of them are remembered."""

    def __init__(self, block_size: int, max_blocks: int = MAX_BLOCKS) -> None:
        self._block_size = block_size
        self._stack = SampledStack(max_blocks, deepest=LARGEST_TOKENS // block_size)
        self._buckets = CapacityBuckets(block_size)

    def ask(self, keys: Sequence[BlockKey], num_tokens: int) -> None:
        """A prompt of `num_tokens` that may reuse the blocks `keys`, from its first on: counts it.

        Blocks that are there become the newest, since a request holds them; the others come in as they are computed:
        two requests that ask for the same at once both compute it.
        """
        halves = _halves(keys)
        found = self._stack.look_up(halves)
        self._buckets.add(found, self._stack.rate, num_tokens - len(keys) * self._block_size)
        self._stack.touch(halves, only_known=True)

    def touch(self, keys: Sequence[BlockKey]) -> None:
        """Blocks that follow each other are filled, or given back: they become the newest, the last one first."""
        self._stack.touch(_halves(keys))

    def counts(self) -> ReuseCounts:
        return ReuseCounts(self._buckets.bounds, self._buckets.counts(), self._stack.rate)

    def sample(self) -> Sample:
        return self._stack.sample()

    def restore(self, sample: Sample) -> None:
        """Before the first request."""
        self._stack.restore(sample)

    def check(self) -> None:
        """Walks everything."""
        self._stack.check()
        self._buckets.check()


def _halves(keys: Sequence[BlockKey]) -> Ints64:
    """Half of each key: it is a hash, and that two of a billion blocks share 64 bits of it has a chance of 3 %."""
    return np.frombuffer(b"".join(keys), np.int64)[:: KEY_BYTES // 8].copy()
