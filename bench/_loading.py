"""A cache whose slower tier has two prompts of 64 blocks, of which gpu holds one at a time. Knows no measuring."""

import threading
from collections.abc import Sequence
from types import TracebackType

from tiers import (
    BlockKey,
    CacheConfig,
    Lease,
    LeaseState,
    MachineLimits,
    MemoryPool,
    SlabSpec,
    Tier,
    TierConfig,
    TieredCache,
    chain_keys,
)

# A block of SmolLM2-135M in fp32: 30 layers × 2 × 3 heads × 64 × 16 tokens × 4 bytes.
SLAB = SlabSpec(737_280, "float32", (30, 2, 3, 16, 64))
NUM_BLOCKS = 64
BATCH_BYTES = NUM_BLOCKS * SLAB.num_bytes
ROOT = b"r" * 16
# Whatever the machine does meanwhile: a prompt that has not come by then never will.
PATIENCE_SECONDS = 60


class Loading:
    """`load` brings the prompt that is not in gpu up from the slower tier, and returns when all of it can be read.

    `let_go` before the next one.
    """

    def __init__(self, slower: TierConfig) -> None:
        self._tier = slower.tier
        self._rung = threading.Event()
        self._pool = MemoryPool(SLAB, NUM_BLOCKS)
        config = CacheConfig(16, SLAB, "bench", (TierConfig(Tier.GPU, BATCH_BYTES), slower))
        self._cache = TieredCache(config, self._pool, memory=MachineLimits(), on_transfer_done=self._rung.set)
        self._prompts = [chain_keys(ROOT, [word] * NUM_BLOCKS, 1) for word in range(2)]
        self._num_loads = 0
        self._lease: Lease | None = None

    def __enter__(self) -> "Loading":
        for keys in self._prompts:
            self._request(keys)
            self.let_go()
            self._settle()
        self.load()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cache.close()

    def load(self) -> None:
        hits = self._request(self._prompts[self._num_loads % 2])
        assert hits == [self._tier] * NUM_BLOCKS, f"only {hits.count(self._tier)} blocks came from {self._tier}"
        self._num_loads += 1

    def let_go(self) -> None:
        if self._lease is not None:
            self._cache.release(self._lease)
            self._lease = None

    def _request(self, keys: Sequence[BlockKey]) -> list[Tier]:
        lease = self._cache.acquire(keys, len(keys), {})
        assert lease is not None
        while lease.state is LeaseState.LOADING:
            assert self._rung.wait(PATIENCE_SECONDS), "no copy ends"
            self._rung.clear()
            self._cache.poll()
        for index in range(len(lease.hit_tiers), len(keys)):
            self._pool.write(lease.block_ids[index], _content(index))
            self._cache.register(lease, index, [keys[index]], keys[index - 1] if index else ROOT)
        self._lease = lease
        return lease.hit_tiers

    def _settle(self) -> None:
        while self._cache.num_transfers:
            self._rung.wait(0.01)
            self._rung.clear()
            self._cache.poll()


def _content(index: int) -> bytes:
    return (index * 2_654_435_761).to_bytes(8, "little") * (SLAB.num_bytes // 8)
