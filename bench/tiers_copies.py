"""How fast a prefix of 64 blocks comes to gpu from cpu and from disk, against a plain copy and a plain read of as much.

The gpu pool is host memory here. Everything a load costs is in it: matching, books, threads, checksums.
"""

import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from bench._alternate import alternate
from bench.result import Result, compare
from tiers import (
    BlockKey,
    CacheConfig,
    LeaseState,
    MachineLimits,
    MemoryPool,
    SlabSpec,
    Tier,
    TierConfig,
    TieredCache,
    chain_keys,
)
from tiers.block_format import stored_bytes

# A block of SmolLM2-135M in fp32: 30 layers × 2 × 3 heads × 64 × 16 tokens × 4 bytes.
SLAB = SlabSpec(737_280, "float32", (30, 2, 3, 16, 64))
NUM_BLOCKS = 64
ROOT = b"r" * 16
ROUNDS = 15
# For each block that comes in one leaves, so cpu moves twice the bytes; disk also writes a file and removes one.
BARS = {"cpu": 4.0, "disk": 8.0}


def run() -> Iterable[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        yield _measure("cpu", TierConfig(Tier.CPU, 4 * NUM_BLOCKS * SLAB.num_bytes), _plain_copy())
        disk = TierConfig(Tier.DISK, 4 * NUM_BLOCKS * stored_bytes(SLAB), path=Path(folder))
        yield _measure("disk", disk, _plain_read(Path(folder)))


def _measure(name: str, slower: TierConfig, reference: Callable[[], object]) -> Result:
    gpu = TierConfig(Tier.GPU, NUM_BLOCKS * SLAB.num_bytes)
    pool = MemoryPool(SLAB, NUM_BLOCKS)
    rung = threading.Event()
    config = CacheConfig(16, SLAB, "bench", (gpu, slower))
    cache = TieredCache(config, pool, memory=MachineLimits(), on_transfer_done=rung.set)
    prompts = [chain_keys(ROOT, [word] * NUM_BLOCKS, 1) for word in range(2)]
    for keys in prompts:
        _request(cache, pool, rung, keys)
    turns = iter(range(1 << 30))
    ours, theirs = alternate(lambda: _request(cache, pool, rung, prompts[next(turns) % 2]), reference, ROUNDS)
    hits = cache.stats()[slower.tier].loaded_blocks
    assert hits == (ROUNDS + 1) * NUM_BLOCKS, f"{hits} blocks were loaded"
    cache.close()
    return compare(
        f"load 64 blocks from {name}",
        ours=ours * 1000,
        reference=theirs * 1000,
        reference_name=f"plain {'copy' if name == 'cpu' else 'read'} of 64 blocks",
        unit="ms",
        bar=BARS[name],
        better="lower",
    )


def _request(cache: TieredCache, pool: MemoryPool, rung: threading.Event, keys: Sequence[BlockKey]) -> None:
    """Until the lease is ready; what was evicted for it goes on by itself."""
    lease = cache.acquire(keys, len(keys), {})
    assert lease is not None
    while lease.state is LeaseState.LOADING:
        rung.wait()
        rung.clear()
        cache.poll()
    for index in range(len(lease.hit_tiers), len(keys)):
        pool.write(lease.block_ids[index], bytes([index]) * SLAB.num_bytes)
        cache.register(lease, index, keys[index], keys[index - 1] if index else ROOT)
    cache.release(lease)


def _plain_copy() -> Callable[[], object]:
    source, target = np.ones((2, NUM_BLOCKS, SLAB.num_bytes), np.uint8)
    return lambda: np.copyto(target, source)


def _plain_read(folder: Path) -> Callable[[], object]:
    """From the page cache, as the tier's own files are."""
    path, target = folder / "plain", np.ones((NUM_BLOCKS, SLAB.num_bytes), np.uint8)
    path.write_bytes(target.tobytes())

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            file.readinto(target.data)

    return read
