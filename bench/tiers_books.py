"""What the books of one block cost: hash, match, acquire, register, release, all hits or all evictions.

Processor time of this thread, so that other processes do not count. The reference is the hashing alone.
"""

import random
import time
from collections.abc import Iterable, Sequence

from bench.result import Result, compare
from tiers import CacheConfig, MachineLimits, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache, chain_keys

SLAB = SlabSpec(64, "uint8", (64,))
BLOCK_SIZE, PROMPT_BLOCKS, NUM_PROMPTS = 16, 256, 100
ROOT = b"r" * 16
BARS = {"found": 6.0, "new": 20.0}


def run() -> Iterable[Result]:
    rng = random.Random(1)
    prompts = [[rng.randrange(50_000) for _ in range(BLOCK_SIZE * PROMPT_BLOCKS)] for _ in range(2 * NUM_PROMPTS)]
    capacity = NUM_PROMPTS * PROMPT_BLOCKS
    tiers = (TierConfig(Tier.GPU, capacity * SLAB.num_bytes),)
    pool = MemoryPool(SLAB, capacity)
    cache = TieredCache(CacheConfig(BLOCK_SIZE, SLAB, "bench", tiers), pool, memory=MachineLimits())
    for prompt in prompts[:NUM_PROMPTS]:
        _request(cache, prompt)
    for name, group in (("found", prompts[:NUM_PROMPTS]), ("new", prompts[NUM_PROMPTS:])):
        yield _measure(name, cache, group)
    cache.close()


def _measure(name: str, cache: TieredCache, prompts: Sequence[Sequence[int]]) -> Result:
    seconds = [0.0, 0.0]
    for prompt in prompts:
        started_at = time.thread_time()
        _request(cache, prompt)
        between = time.thread_time()
        chain_keys(ROOT, prompt, BLOCK_SIZE)
        seconds[0] += between - started_at
        seconds[1] += time.thread_time() - between
    ours, reference = (total * 1e6 / len(prompts) / PROMPT_BLOCKS for total in seconds)
    return compare(
        f"books of a block, all {name}",
        ours=ours,
        reference=reference,
        reference_name="its hash alone",
        unit="µs",
        bar=BARS[name],
        better="lower",
    )


def _request(cache: TieredCache, prompt: Sequence[int]) -> None:
    keys = chain_keys(ROOT, prompt, BLOCK_SIZE)
    lease = cache.acquire(keys, len(keys), {})
    assert lease is not None
    for index in range(len(lease.hit_tiers), len(keys)):
        cache.register(lease, index, keys[index], keys[index - 1] if index else ROOT)
    cache.release(lease)
