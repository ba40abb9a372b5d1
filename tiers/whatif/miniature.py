"""Hit rates of policies that have no stack, S3-FIFO and ARC: the real cache, small, over a sample of the blocks.

Miniature simulation (Waldspurger, Saemundsson, Ahmad & Park, USENIX ATC'17): of blocks that are sampled by hash, a
cache of rate × capacity behaves as the whole one does of all. What the draw alone does is known from LRU, whose exact
answer is there: the same sample's error at the same size is taken off. Knows nothing about files.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tiers.cache import TieredCache
from tiers.config import CacheConfig, SlabSpec, TierConfig
from tiers.errors import CapacityError
from tiers.keys import KEY_BYTES, BlockKey
from tiers.limits import MachineLimits
from tiers.names import Policy, Tier
from tiers.pool import MemoryPool
from tiers.whatif.accesses import Accesses
from tiers.whatif.curve import HitCurve
from tiers.whatif.shards import ALL, hashes
from tiers.whatif.shards_trace import hashed
from tiers.whatif.stack import stack_positions

SLAB = SlabSpec(1, "uint8", (1,))
ROOT = bytes(KEY_BYTES)

Rates = tuple[float, float]  # of blocks, of tokens


class Miniature:
    """The sampled part of a trace, to be served by caches of any size and policy."""

    def __init__(self, accesses: Accesses, rate: float) -> None:
        """Raises ValueError for a rate that is none, or that leaves nothing."""
        if not 0 < rate <= 1:
            raise ValueError(f"The sample rate is {rate:g}; expected more than 0 and at most 1, like 0.1.")
        self._rate = rate
        self._requests = list(_sampled(accesses, rate))
        self._num_blocks = sum(sum(is_asked) for _, _, is_asked in self._requests)
        self._num_tokens = sum(sum(tokens) for _, tokens, _ in self._requests) + round(accesses.never_tokens * rate)
        if not self._num_blocks:
            raise ValueError(f"Of {accesses.num_unique:,} blocks a share of {rate:g} is none; take more.")
        positions = stack_positions(accesses)
        self._blocks, self._tokens = HitCurve(), HitCurve()
        self._blocks.add(positions, accesses.is_asked.astype(np.int64))
        self._tokens.add(positions, accesses.num_tokens)
        self._tokens.miss(accesses.never_tokens)

    def rates(self, capacity: int | None, policy: Policy) -> Rates:
        """Shares of blocks and of tokens that one cache of `capacity` blocks serves; None is one without limit."""
        exact = [curve.hits(capacity) / max(curve.total, 1) for curve in (self._blocks, self._tokens)]
        if capacity is None or policy is Policy.LRU:
            return exact[0], exact[1]
        if self._rate == 1:
            return self._served(capacity, policy)
        pairs = zip(exact, self._served(capacity, policy), self._served(capacity, Policy.LRU), strict=True)
        blocks, tokens = (min(max(lru + ours - theirs, 0.0), 1.0) for lru, ours, theirs in pairs)
        return blocks, tokens

    def _served(self, capacity: int, policy: Policy) -> Rates:
        num_slots = round(capacity * self._rate)
        if not num_slots:
            return 0.0, 0.0
        tiers = (TierConfig(Tier.GPU, num_slots, policy=policy),)
        cache = TieredCache(
            CacheConfig(1, SLAB, "miniature", tiers, 0), MemoryPool(SLAB, num_slots), memory=MachineLimits()
        )
        num_blocks = num_tokens = 0
        for keys, tokens, is_asked in self._requests:
            num_hit = _request(cache, keys)
            num_blocks += sum(is_asked[:num_hit])
            num_tokens += sum(tokens[:num_hit])
        cache.close()
        return num_blocks / self._num_blocks, num_tokens / max(self._num_tokens, 1)


def _sampled(accesses: Accesses, rate: float) -> Iterator[tuple[list[BlockKey], Sequence[int], Sequence[bool]]]:
    """The requests, also those of which nothing is left."""
    halves = hashed(accesses.block_ids)
    is_sampled = hashes(halves) < round(ALL * rate)
    for first, end in pairwise(accesses.starts.tolist()):
        part = is_sampled[first:end]
        ids, tokens = halves[first:end][part], accesses.num_tokens[first:end][part]
        yield [half.tobytes() * 2 for half in ids], tokens.tolist(), accesses.is_asked[first:end][part].tolist()


def _request(cache: TieredCache, keys: list[BlockKey]) -> int:
    """How many of the blocks are served. A prompt that is larger than the cache leaves nothing there."""
    try:
        lease = cache.acquire(keys, len(keys), {})
    except CapacityError:
        return len(cache.match(keys))
    assert lease is not None, "blocks are held without a request"
    first = len(lease.hit_tiers)
    if first < len(keys):
        cache.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)
    cache.release(lease)
    return first


def miniature_rates(accesses: Accesses, capacities: Sequence[int | None], policy: Policy, rate: float) -> list[Rates]:
    """Raises ValueError, see `Miniature`."""
    miniature = Miniature(accesses, rate)
    return [miniature.rates(capacity, policy) for capacity in capacities]
