"""The fourth tier's limits, and what its server's faults cost: hits, and no request."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiers.proxy import Proxy
from tests.tiers.rig import (
    SLAB,
    Build,
    Clock,
    block_bytes,
    config,
    content,
    keys_of,
    look,
    make_rig,
    value_name,
)
from tests.tiers.valkey import ValkeyServer
from tiers import LeaseState, RefusedError, Tier, TierConfig, WriteMode

A, B, C = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]


# -- limits ------------------------------------------------------------------------------------------------------------
def test_a_size_of_nothing_switches_it_off_here_and_leaves_the_others_theirs(build: Build, clock: Clock) -> None:
    one, other = build(), build()
    one.request(keys_of(A))
    one.resize(Tier.REMOTE, 0)
    one.settle()
    assert one.resident()[Tier.REMOTE] == 0
    one.request(keys_of(B))
    look(other, clock)
    assert other.cache.match(keys_of(A)) == [Tier.REMOTE] * 4
    assert other.cache.match(keys_of(B)) == []
    one.resize(Tier.REMOTE, 16)
    look(one, clock)
    assert one.resident()[Tier.REMOTE] == 4


def test_a_smaller_limit_here_does_nothing_to_what_others_store_until_one_stores(build: Build, clock: Clock) -> None:
    small, large = build(remote=4), build(remote=16)
    for words in (A, B):
        large.request(keys_of(words))
    look(small, clock)
    assert small.resident()[Tier.REMOTE] == 8
    assert small.request(keys_of(A)) == [Tier.REMOTE] * 3
    small.request(keys_of(C))
    assert small.resident()[Tier.REMOTE] == 4


def test_a_size_that_the_server_cannot_give_is_refused_with_the_reason(build: Build, tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, "--maxmemory", "64mb").start()
    try:
        rig = build(url=server.url)
        with pytest.raises(RefusedError, match=r"what its server may use, 64 MiB \(67,108,864 bytes\), less a reserve"):
            rig.cache.resize(Tier.REMOTE, 64 << 20)
        rig.cache.resize(Tier.REMOTE, rig.cache.max_bytes(Tier.REMOTE))
    finally:
        server.kill()


def test_an_engine_starts_without_its_server_and_says_why_it_knows_no_size(build: Build, tmp_path: Path) -> None:
    rig = build(url=f"unix://{tmp_path}/nobody.sock")
    rig.request(keys_of(A))
    with pytest.raises(RefusedError, match=r"its server has not answered yet \(.*nobody.sock"):
        rig.resize(Tier.REMOTE, 99)
    told = rig.cache.stats()[Tier.REMOTE].health.last_error
    assert "nobody.sock" in told
    assert not told.endswith("."), "it stands in sentences that have an end of their own"


def test_a_server_that_evicts_is_warned_about(build: Build, tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru").start()
    try:
        assert "allkeys-lru" in build(url=server.url).cache.stats()[Tier.REMOTE].health.warning
    finally:
        server.kill()


def test_a_password_is_not_shown_with_the_configuration() -> None:
    assert "secret" not in repr(TierConfig(Tier.REMOTE, 1, url="redis://:secret@host:6379/0"))


# -- faults ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def proxy(kv_server: ValkeyServer) -> Iterator[Proxy]:
    proxy = Proxy(kv_server.socket)
    yield proxy
    proxy.close()


def test_a_request_whose_server_fails_computes_and_nothing_is_removed(
    build: Build, proxy: Proxy, kv_server: ValkeyServer
) -> None:
    build().request(keys_of(A))
    rig = build(url=proxy.url)
    proxy.refuse()
    lease = rig.cache.acquire(keys_of(A), 4, {})
    assert lease is not None
    assert lease.hit_tiers == [Tier.REMOTE] * 4
    rig.settle()
    assert lease.state is LeaseState.FAILED
    rig.cache.release(lease)
    assert rig.request(keys_of(A)) == []
    assert rig.cache.stats()[Tier.REMOTE].errors["load"] == 4
    assert all(kv_server.client.exists(value_name(key)) for key in keys_of(A))


def test_while_the_breaker_is_open_nothing_is_matched_and_stores_are_dropped_counted_and_explained(
    build: Build, proxy: Proxy, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    rig = build(url=proxy.url)
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    proxy.refuse()
    for _ in range(3):  # looks fail
        look(rig, clock)
    stats = rig.cache.stats()[Tier.REMOTE]
    assert (stats.health.is_up, stats.health.num_opened, stats.resident_blocks) == (False, 1, 0)
    assert "refused" in stats.health.last_error
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 2
    rig.request(keys_of(C))
    assert rig.cache.stats()[Tier.REMOTE].errors["store"] >= 4
    assert "could not be stored in the remote tier: not asked, because it failed before: " in caplog.text
    assert "on their way" not in caplog.text
    proxy.listen()
    look(rig, clock)
    look(rig, clock)
    assert rig.cache.stats()[Tier.REMOTE].health.is_up
    assert rig.cache.match(keys_of(A)) == [Tier.REMOTE] * 4


def test_a_restarted_server_is_seen_empty(build: Build, clock: Clock, tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path).start()
    try:
        rig = build(url=server.url)
        rig.request(keys_of(A))
        assert rig.resident()[Tier.REMOTE] == 4
        server.kill()
        server.start()
        look(rig, clock)
        assert rig.resident()[Tier.REMOTE] == 0
        rig.request(keys_of(B))
        assert rig.cache.stats()[Tier.REMOTE].errors == {"load": 0, "store": 0}
    finally:
        server.kill()


def test_a_server_that_hangs_takes_no_more_than_its_share_of_the_memory_for_what_is_on_its_way(
    kv_server: ValkeyServer, proxy: Proxy
) -> None:
    settings = config(gpu=300, remote=1000, url=proxy.url, mode=WriteMode.WRITE_THROUGH, num_threads=2)
    rig = make_rig(settings)
    proxy.mode = "hang"
    lease = rig.cache.acquire([], 300, {})
    assert lease is not None
    rig.compute(lease, keys_of(range(300)))
    stats = rig.cache.stats()[Tier.REMOTE]
    assert stats.resident_blocks <= rig.cache._parts.host.num_staging // 2
    assert stats.errors["store"] == 300 - stats.resident_blocks
    rig.cache.release(lease)
    started_at = time.monotonic()
    rig.cache.close()
    assert time.monotonic() - started_at < 8, "closing waits for a server that hangs"


def test_other_copies_go_on_while_a_server_hangs(build: Build, proxy: Proxy, kv_server: ValkeyServer) -> None:
    build().request(keys_of(A))
    rig = make_rig(config(gpu=6, cpu=6, remote=16, url=proxy.url, num_threads=2))
    rig.request(keys_of(B))
    rig.request(keys_of(C))
    proxy.mode = "hang"
    slow = rig.cache.acquire(keys_of(A)[:1], 1, {})
    quick = rig.cache.acquire(keys_of(B), 4, {})
    assert slow is not None
    assert quick is not None
    deadline = time.monotonic() + 8  # the server is given up after 10 s
    while quick.state is LeaseState.LOADING:
        assert time.monotonic() < deadline, "a copy from cpu waits for the server"
        rig.cache.poll()
    assert slow.state is LeaseState.LOADING
    assert [bytes(rig.pool.read(slot)) for slot in quick.block_ids] == [content(key) for key in keys_of(B)]
    rig.cache.close()
    assert block_bytes(Tier.REMOTE) > SLAB.num_bytes
