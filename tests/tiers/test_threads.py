"""Real transfer threads, real memory, real files: requests race with copies, and still read only what was written."""

import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.tiers.rig import EndlessMachine
from tiers import (
    BlockKey,
    CacheConfig,
    Lease,
    LeaseState,
    MemoryPool,
    SlabSpec,
    Tier,
    TierConfig,
    TieredCache,
    WriteMode,
    chain_keys,
)
from tiers.block_format import stored_bytes

SLAB = SlabSpec(64 << 10, "uint8", (64 << 10,))
ROOT = b"r" * 16
NUM_REQUESTS = 400
MOST_TRANSFERS = 64


def pattern(key: BlockKey) -> np.ndarray:
    return np.frombuffer(key * (SLAB.num_bytes // 16), np.uint8)


def build(path: Path, mode: WriteMode, num_threads: int) -> tuple[TieredCache, MemoryPool]:
    sizes = {Tier.GPU: 24 * SLAB.num_bytes, Tier.CPU: 12 * SLAB.num_bytes, Tier.DISK: 40 * stored_bytes(SLAB)}
    tiers = tuple(TierConfig(t, size, mode, path=path if t is Tier.DISK else None) for t, size in sizes.items())
    pool = MemoryPool(SLAB)
    config = CacheConfig(1, SLAB, "threads", tiers, num_threads)
    return TieredCache(config, pool, memory=EndlessMachine()), pool


@pytest.fixture(autouse=True)
def threads_are_switched_all_the_time() -> Iterator[None]:
    """A thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=[(mode, threads) for mode in WriteMode for threads in (1, 2)], ids=str)
def cache_and_pool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[TieredCache, MemoryPool]]:
    cache, pool = build(tmp_path, *request.param)
    yield cache, pool
    cache.close()


def finish(cache: TieredCache, pool: MemoryPool, lease: Lease, keys: list[BlockKey]) -> None:
    for index, key in enumerate(keys):
        block = np.frombuffer(pool.read(lease.block_ids[index]), np.uint8)
        if index < len(lease.hit_tiers):
            assert np.array_equal(block, pattern(key)), f"block {index} of a lease has another content"
        else:
            block[:] = pattern(key)
            cache.register(lease, index, [key], keys[index - 1] if index else ROOT)
    cache.release(lease)


def test_racing_requests_read_what_was_written(cache_and_pool: tuple[TieredCache, MemoryPool]) -> None:
    cache, pool = cache_and_pool
    rng = random.Random(7)
    open_leases: list[tuple[Lease, list[BlockKey]]] = []
    num_started, deadline = 0, time.monotonic() + 60
    while num_started < NUM_REQUESTS or open_leases:
        assert time.monotonic() < deadline, "requests stall"
        cache.poll()
        # Stores that pile up are dropped, as they should be, and counted as errors: here none may be.
        if num_started < NUM_REQUESTS and len(open_leases) < 3 and cache.num_transfers < MOST_TRANSFERS:
            keys = chain_keys(ROOT, [rng.randint(0, 2) for _ in range(rng.randint(2, 7))], 1)
            lease = cache.acquire(keys[:-1], len(keys), {})
            if lease is not None:
                open_leases.append((lease, keys))
                num_started += 1
        for lease, keys in [pair for pair in open_leases if pair[0].state is LeaseState.READY]:
            open_leases.remove((lease, keys))
            finish(cache, pool, lease, keys)
        if num_started % 50 == 0:
            cache.check()
            cache.resize(Tier.CPU, rng.randint(0, 12) * SLAB.num_bytes)
    while cache.poll() or cache.num_transfers:
        assert time.monotonic() < deadline, "transfers do not end"
    cache.check()
    stats = cache.stats()
    assert all(tier.errors == {"load": 0, "store": 0} for tier in stats.tiers.values())
    assert stats[Tier.DISK].loaded_blocks > 0


def test_the_owner_is_rung_when_a_copy_is_done(tmp_path: Path) -> None:
    cache, pool = build(tmp_path, WriteMode.WRITE_THROUGH, 2)
    rung = threading.Event()
    cache.on_transfer_done = rung.set
    keys = chain_keys(ROOT, [1, 2], 1)
    lease = cache.acquire([], 2, {})
    assert lease is not None
    finish(cache, pool, lease, keys)
    assert rung.wait(10)
    cache.close()


def test_closing_ends_the_threads_with_copies_still_to_be_made(tmp_path: Path) -> None:
    before = threading.active_count()
    cache, pool = build(tmp_path, WriteMode.WRITE_THROUGH, 2)
    keys = chain_keys(ROOT, list(range(20)), 1)
    lease = cache.acquire([], 20, {})
    assert lease is not None
    finish(cache, pool, lease, keys)
    cache.close()
    cache.close()
    assert threading.active_count() == before
