"""A real hour of conversations through the index: the hit rates that are known for each policy at each capacity.

LRU's are those of ../shared/traces/README.md. The listings of S3-FIFO and ARC on independent keys, not closed under
prefix, find .1955 and .2225 with 10,000 blocks. libCacheSim 0.3.5 finds the same for ARC and .1925 for S3-FIFO: before
the first block has to leave, it fills the main queue there.
"""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from tests.tiers.rig import EndlessMachine
from tiers import CacheConfig, MemoryPool, Policy, SlabSpec, Tier, TierConfig, TieredCache

TRACE = Path(__file__).parents[3] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
SLAB = SlabSpec(1, "uint8", (1,))
ROOT = bytes(16)
NUM_UNIQUE = 182_790
LARGEST_CHECKED = 30_000  # blocks; going through the books of all of them takes 8 s


@cache
def requests() -> list[list[bytes]]:
    with gzip.open(TRACE) as lines:
        return [[block.to_bytes(16, "big") for block in json.loads(line)["hash_ids"]] for line in lines]


def build(*sizes: int, policy: Policy = Policy.LRU) -> TieredCache:
    """Blocks of gpu, and of cpu."""
    tiers = tuple(
        TierConfig(tier, size, policy=policy) for tier, size in zip((Tier.GPU, Tier.CPU), sizes, strict=False)
    )
    return TieredCache(CacheConfig(1, SLAB, "trace", tiers, 0), MemoryPool(SLAB, sizes[0]), memory=EndlessMachine())


def replay(cache: TieredCache) -> Iterator[list[Tier]]:
    """Tiers of the blocks that each request found; all of its blocks, the last one too, may be reused."""
    for keys in requests():
        lease = cache.acquire(keys, len(keys), {})
        assert lease is not None
        first = len(lease.hit_tiers)
        cache.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)
        cache.release(lease)
        while cache.poll() or cache.num_transfers:
            pass
        yield lease.hit_tiers


LRU, S3FIFO, ARC = Policy.LRU, Policy.S3FIFO, Policy.ARC
KNOWN = [
    *[(LRU, 1_000, 0.0445), (LRU, 10_000, 0.2116), (LRU, 30_000, 0.3257), (LRU, 50_000, 0.3546)],
    *[(LRU, 100_000, 0.3637), (LRU, NUM_UNIQUE, 0.3664)],
    *[(S3FIFO, 10_000, 0.1885), (ARC, 10_000, 0.2226)],
]


@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
@pytest.mark.parametrize(("policy", "capacity", "hit_rate"), KNOWN)
def test_hit_rates_of_a_real_trace_are_those_that_are_known(policy: Policy, capacity: int, hit_rate: float) -> None:
    cache = build(capacity, policy=policy)
    num_hits = sum(map(len, replay(cache)))
    num_blocks = sum(map(len, requests()))
    assert num_blocks == 288_500
    assert round(num_hits / num_blocks, 4) == hit_rate
    if capacity <= LARGEST_CHECKED:
        cache.check()


@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
def test_exclusive_tiers_share_one_lru_stack() -> None:
    """1,000 blocks of gpu and 4,000 of cpu find what one tier of 5,000 finds, and gpu its part of it: to the block."""
    both, small, large = (
        [tier for tiers in islice(replay(build(*sizes)), 2_000) for tier in tiers]
        for sizes in ((1_000, 4_000), (1_000,), (5_000,))
    )
    assert len(both) == len(large) > len(small) > 0
    assert both.count(Tier.GPU) == len(small)
