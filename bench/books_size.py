"""Memory of the books a block, and the time of a look-up (`match`), as the cache grows to ten million blocks.

A gpu tier with a quota, filled by requests as they are served: prompts of 1,000 blocks whose keys are random, of a
hundred tenants, and that nobody reads any more. The memory is what the process has more after it, not what was asked
for. Takes 2 GB and half a minute.
"""

import struct
import time
from collections.abc import Iterable
from statistics import median

import numpy as np
import psutil

from bench.result import Result, compare
from tiers import BlockKey, CacheConfig, MachineLimits, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PROMPT_BLOCKS, NUM_LOOKUPS = 1_000, 100
NUM_TENANTS = 100
ROOT = bytes(16)
SLAB = SlabSpec(1, "uint8", (1,))
MAX_BYTES, MAX_GROWTH = 200, 2.0


def run() -> Iterable[Result]:
    before = psutil.Process().memory_info().rss
    tiers = (TierConfig(Tier.GPU, SIZES[-1], tenant_quota=0.5),)
    cache = TieredCache(CacheConfig(16, SLAB, "bench", tiers, 0), MemoryPool(SLAB, SIZES[-1]), memory=MachineLimits())
    rng = np.random.default_rng(1)
    seeds: list[int] = []
    first: float | None = None
    for size in SIZES:
        while len(seeds) * PROMPT_BLOCKS < size:
            seeds.append(int(rng.integers(1 << 62)))
            _serve(cache, _keys(seeds[-1]), f"tenant {len(seeds) % NUM_TENANTS}")
        seconds = _seconds_a_block(cache, [seeds[place] for place in rng.integers(len(seeds), size=NUM_LOOKUPS)])
        first = first or seconds
        yield compare(
            f"look-up in {size:,} blocks",
            ours=seconds * 1e9,
            reference=first * 1e9,
            reference_name=f"in {SIZES[0]:,}",
            unit="ns",
            bar=MAX_GROWTH,
            better="lower",
        )
    yield compare(
        f"memory of {SIZES[-1]:,} blocks' books",
        ours=(psutil.Process().memory_info().rss - before) / SIZES[-1],
        reference=MAX_BYTES,
        reference_name="the bar",
        unit="bytes",
        bar=1.0,
        better="lower",
    )


def _keys(seed: int) -> list[BlockKey]:
    """The keys of one prompt, made again when they are needed."""
    return list(struct.unpack("16s" * PROMPT_BLOCKS, np.random.default_rng(seed).bytes(16 * PROMPT_BLOCKS)))


def _serve(cache: TieredCache, keys: list[BlockKey], tenant: str) -> None:
    lease = cache.acquire(keys, len(keys), {}, tenant)
    assert lease is not None
    cache.register(lease, 0, keys, ROOT)
    cache.release(lease)


def _seconds_a_block(cache: TieredCache, seeds: list[int]) -> float:
    """Each prompt was not asked for since it came, so that its blocks are in no processor's cache."""
    taken: list[float] = []
    for seed in seeds:
        keys = _keys(seed)
        started_at = time.thread_time()
        found = cache.match(keys)
        taken.append(time.thread_time() - started_at)
        assert len(found) == PROMPT_BLOCKS, "a block is lost"
    return median(taken) / PROMPT_BLOCKS
