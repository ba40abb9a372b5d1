"""Two engines on real threads race over one real server: each reads only what was written, whatever the server does."""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiers.rig import EndlessMachine
from tests.tiers.test_threads import ROOT, SLAB, finish
from tests.tiers.valkey import ValkeyServer
from tiers import (
    CacheConfig,
    LeaseState,
    MemoryPool,
    Tier,
    TierConfig,
    TieredCache,
    WriteMode,
    chain_keys,
)
from tiers.block_format import stored_bytes

NUM_REQUESTS = 300


class Engine:
    """Sends itself requests until it has had enough; `failure` is what went wrong."""

    def __init__(self, url: str, mode: WriteMode, seed: int) -> None:
        tiers = (
            TierConfig(Tier.GPU, 24 * SLAB.num_bytes),
            TierConfig(Tier.CPU, 8 * SLAB.num_bytes, mode),
            TierConfig(Tier.REMOTE, 60 * stored_bytes(SLAB), mode, url=url, timeout_seconds=20),
        )
        self.pool = MemoryPool(SLAB)
        self.cache = TieredCache(CacheConfig(1, SLAB, "threads", tiers), self.pool, memory=EndlessMachine())
        self.rng = random.Random(seed)
        self.num_done = 0
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._guarded)

    def _guarded(self) -> None:
        try:
            self._work(time.monotonic() + 100)
        except BaseException as failure:
            self.failure = failure

    def _work(self, deadline: float) -> None:
        while self.num_done < NUM_REQUESTS:
            keys = chain_keys(ROOT, [self.rng.randint(0, 2) for _ in range(self.rng.randint(2, 7))], 1)
            while not self._serve(keys):
                time.sleep(0.0002)
                assert time.monotonic() < deadline, "a request stalls"
            self.num_done += 1
            if self.num_done % 50 == 0:
                self.cache.check()
        while self.cache.poll() or self.cache.num_transfers:
            time.sleep(0.0002)
            assert time.monotonic() < deadline, "transfers do not end"
        self.cache.check()

    def _serve(self, keys: list[bytes]) -> bool:
        self.cache.poll()
        lease = self.cache.acquire(keys[:-1], len(keys), {})
        if lease is None:
            return False
        while lease.state is LeaseState.LOADING:
            time.sleep(0.0002)  # as an engine's step takes longer than a look; without it two threads look all the time
            self.cache.poll()
        if lease.state is LeaseState.FAILED:
            self.cache.release(lease)
            return False
        finish(self.cache, self.pool, lease, keys)
        return True


def race(url: str, mode: WriteMode, meanwhile: Callable[[list[Engine]], None]) -> list[Engine]:
    engines = [Engine(url, mode, seed) for seed in (1, 2)]
    for engine in engines:
        engine.thread.start()
    meanwhile(engines)
    for engine in engines:
        engine.thread.join(120)
        engine.cache.close()
        if engine.failure is not None:
            raise engine.failure
        assert engine.num_done == NUM_REQUESTS
    return engines


@pytest.mark.parametrize("mode", WriteMode)
def test_engines_that_share_a_server_read_what_either_wrote(kv_server: ValkeyServer, mode: WriteMode) -> None:
    engines = race(kv_server.url, mode, lambda engines: None)
    for engine in engines:
        stats = engine.cache.stats()[Tier.REMOTE]
        assert stats.loaded_blocks > 0
        assert stats.evicted_blocks["corrupt"] == 0
        assert stats.errors["load"] == 0  # stores may be dropped: they are asked for faster than any server takes them
    assert kv_server.client.zcard(next(kv_server.client.scan_iter(match="ts:kv:*:index"))) <= 60


def test_a_server_that_is_killed_and_restarted_costs_hits_but_no_request(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path).start()

    def kill_and_restart(engines: list[Engine]) -> None:
        for share in (4, 2):
            while min(engine.num_done for engine in engines) < NUM_REQUESTS // share and all(
                engine.thread.is_alive() for engine in engines
            ):
                time.sleep(0.002)
            server.kill()
            time.sleep(0.05)
            server.start()

    try:
        engines = race(server.url, WriteMode.WRITE_THROUGH, kill_and_restart)
        assert sum(engine.cache.stats()[Tier.REMOTE].evicted_blocks["corrupt"] for engine in engines) == 0
    finally:
        server.kill()
