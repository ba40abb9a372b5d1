"""What each eviction policy finds of a real hour of conversations, and how fast it keeps its books.

Replays the Mooncake trace (../shared/traces) through a cache with a gpu tier alone: keys only, a byte a block. Hits and
speed are compared with LRU's at the same size, LRU's speed with the bar. Says nothing where there is no trace.
"""

import gzip
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.result import Result, compare
from tiers import CacheConfig, MachineLimits, MemoryPool, Policy, SlabSpec, Tier, TierConfig, TieredCache

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
SLAB = SlabSpec(1, "uint8", (1,))
ROOT = bytes(16)
SIZES = (1_000, 10_000, 50_000)
BAR_PER_SECOND = 200_000

Prompt = Sequence[bytes]


@dataclass(frozen=True)
class Replay:
    """Hit blocks / all blocks, and blocks a second of this thread's processor time."""

    hit_rate: float
    per_second: float


def run() -> Iterable[Result]:
    if not TRACE.exists():
        return
    with gzip.open(TRACE) as lines:
        prompts = [[block.to_bytes(16, "big") for block in json.loads(line)["hash_ids"]] for line in lines]
    for size in SIZES:
        lru = _replay(prompts, Policy.LRU, size)
        yield compare(
            f"books, lru, {size:,} blocks",
            ours=lru.per_second,
            reference=BAR_PER_SECOND,
            reference_name="the bar",
            unit="blocks/s",
            bar=1.0,
            better="higher",
        )
        for policy in (Policy.S3FIFO, Policy.ARC):
            yield from _beside(lru, _replay(prompts, policy, size), f"{policy}, {size:,} blocks")


def _beside(lru: Replay, other: Replay, name: str) -> Iterable[Result]:
    for what, ours, reference, unit, bar in (
        ("hits", other.hit_rate, lru.hit_rate, "of blocks", 0.85),
        ("books", other.per_second, lru.per_second, "blocks/s", 0.5),
    ):
        yield compare(
            f"{what}, {name}", ours=ours, reference=reference, reference_name="lru", unit=unit, bar=bar, better="higher"
        )


def _replay(prompts: Sequence[Prompt], policy: Policy, size: int) -> Replay:
    tiers = (TierConfig(Tier.GPU, size, policy=policy),)
    cache = TieredCache(CacheConfig(1, SLAB, "trace", tiers, 0), MemoryPool(SLAB, size), memory=MachineLimits())
    num_hits, started_at = 0, time.thread_time()
    for keys in prompts:
        num_hits += _request(cache, keys)
    seconds = time.thread_time() - started_at
    num_blocks = sum(map(len, prompts))
    return Replay(num_hits / num_blocks, num_blocks / seconds)


def _request(cache: TieredCache, keys: Prompt) -> int:
    lease = cache.acquire(keys, len(keys), {})
    assert lease is not None
    num_hits = len(lease.hit_tiers)
    cache.register(lease, num_hits, keys[num_hits:], keys[num_hits - 1] if num_hits else ROOT)
    cache.release(lease)
    return num_hits
