"""The fourth tier as an engine and its administrator see it: shared with others, limited, and allowed to fail."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tiers.proxy import Proxy
from tests.tiers.rig import SLAB, Clock, EndlessMachine, Rig, block_bytes, config, content, keys_of, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import LeaseState, MemoryPool, RefusedError, Tier, TierConfig, TieredCache, WriteMode
from tiers.remote import RemoteStore

A, B, C = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]
Build = Callable[..., Rig]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def build(kv_server: ValkeyServer, clock: Clock) -> Iterator[Build]:
    """Engines with 6 blocks of gpu, each with the same server below."""
    rigs: list[Rig] = []

    def rig(mode: WriteMode = WriteMode.WRITE_THROUGH, url: str = kv_server.url, **sizes: int) -> Rig:
        settings = config(**{"gpu": 6, "remote": 16, "url": url, "mode": mode} | sizes)  # type: ignore[arg-type]
        rigs.append(make_rig(settings, clock=clock))
        return rigs[-1]

    yield rig
    for each in rigs:
        each.cache.close()


def look(rig: Rig, clock: Clock) -> None:
    clock.now += 10
    rig.settle()


def value_name(key: bytes) -> bytes:
    return RemoteStore("unix:///nowhere", SLAB, 4, "test").prefix + b"b:" + key


# -- shared ------------------------------------------------------------------------------------------------------------
def test_what_one_engine_stored_another_hits(build: Build, clock: Clock) -> None:
    one, other = build(), build()
    one.request(keys_of(A))
    assert other.request(keys_of(A)) == []  # it has not looked since
    one.request(keys_of(B))
    look(other, clock)
    assert other.request(keys_of(B)) == [Tier.REMOTE] * 3
    assert other.request(keys_of(B)) == [Tier.GPU] * 3


def test_until_a_look_was_booked_the_tier_says_that_it_is_not_known(build: Build, kv_server: ValkeyServer) -> None:
    build().request(keys_of(A))
    new = TieredCache(config(gpu=6, remote=16, url=kv_server.url), MemoryPool(SLAB, 6), memory=EndlessMachine())
    assert not new.stats()[Tier.REMOTE].health.is_known
    while not new.stats()[Tier.REMOTE].health.is_known:
        new.poll()
    assert new.stats()[Tier.REMOTE].resident_blocks == 4
    new.close()


def test_a_new_engine_knows_at_once_what_is_there(build: Build) -> None:
    build().request(keys_of(A))
    assert build().request(keys_of(A)) == [Tier.REMOTE] * 3


@pytest.mark.parametrize("mode", [WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH])
def test_a_hit_stays_for_the_others(build: Build, clock: Clock, mode: WriteMode) -> None:
    one, other = build(mode), build(mode)
    one.request(keys_of(A))
    one.request(keys_of(B))  # with write_back only this pushes A out, in part
    num_blocks = one.resident()[Tier.REMOTE]
    assert num_blocks >= 2
    look(other, clock)
    one.request(keys_of(A))
    look(other, clock)
    assert other.resident()[Tier.REMOTE] >= num_blocks
    assert one.cache.match(keys_of(A)) == [Tier.GPU] * 4


def test_a_clean_stop_leaves_the_others_what_only_this_engine_had(build: Build) -> None:
    stopping = build(WriteMode.WRITE_BACK, cpu=4)
    for words in (A, B):
        stopping.request(keys_of(words))
    assert stopping.resident()[Tier.REMOTE] == 0
    stopping.cache.flush(float("inf"))
    stopping.cache.close()
    other = build()
    assert other.resident()[Tier.REMOTE] == 8
    assert other.request(keys_of(A)) == other.request(keys_of(B)) == [Tier.REMOTE] * 3


def test_a_stop_sends_the_newest_where_there_is_no_room_for_all(build: Build) -> None:
    stopping = build(WriteMode.WRITE_BACK, cpu=4, remote=6)
    for words in (A, B):
        stopping.request(keys_of(words))
    stopping.cache.flush(float("inf"))
    stopping.cache.close()
    other = build(remote=6)
    assert len(other.cache.match(keys_of(B))) == 4
    assert len(other.cache.match(keys_of(A))) == 2
    other.request(keys_of(C[:2]))  # which makes the two oldest leave: A's
    assert len(other.cache.match(keys_of(B))) == 4
    assert other.cache.match(keys_of(A)) == []


def test_a_stop_sends_no_block_twice_and_none_without_time(build: Build, kv_server: ValkeyServer, clock: Clock) -> None:
    stopping = build()
    stopping.request(keys_of(A))
    before = kv_server.client.info("commandstats")["cmdstat_set"]["calls"]
    stopping.cache.flush(float("inf"))
    late = build(WriteMode.WRITE_BACK)
    late.request(keys_of(B))
    late.cache.flush(clock.now)
    assert kv_server.client.info("commandstats")["cmdstat_set"]["calls"] == before


def test_a_stop_does_not_wait_for_a_server_that_is_gone(build: Build, tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path).start()
    stopping = build(WriteMode.WRITE_BACK, url=server.url)
    stopping.request(keys_of(A))
    server.kill()
    started = time.monotonic()
    stopping.cache.flush(float("inf"))
    stopping.cache.close()
    assert time.monotonic() - started < 5


def test_engines_of_other_models_share_nothing(build: Build, kv_server: ValkeyServer) -> None:
    build().request(keys_of(A))
    stranger = make_rig(config(gpu=6, remote=16, url=kv_server.url, fingerprint="another model"))
    assert stranger.cache.match(keys_of(A)) == []
    assert stranger.resident()[Tier.REMOTE] == 0
    stranger.cache.close()


def test_what_another_engine_removed_is_a_miss_and_no_damage(build: Build) -> None:
    one = build()
    one.request(keys_of(A))
    other = build()
    one.cache.clear(Tier.REMOTE)
    one.settle()
    assert other.cache.match(keys_of(A)) == [Tier.REMOTE] * 4  # it has not looked since
    lease = other.cache.acquire(keys_of(A), 4, {})
    assert lease is not None
    other.settle()
    assert lease.state is LeaseState.FAILED
    other.cache.release(lease)
    other.settle()
    assert other.cache.match(keys_of(A)) == []
    stats = other.cache.stats()[Tier.REMOTE]
    assert (stats.errors["load"], stats.evicted_blocks["corrupt"]) == (0, 0)


def test_after_a_look_what_another_engine_removed_is_not_even_tried(build: Build, clock: Clock) -> None:
    one = build()
    one.request(keys_of(A))
    other = build()
    one.cache.clear(Tier.REMOTE)
    one.settle()
    look(other, clock)
    assert other.cache.match(keys_of(A)) == []
    assert sum(other.cache.stats()[Tier.REMOTE].evicted_blocks.values()) == 0  # counted by the one that did it


def test_a_block_that_others_use_is_not_the_next_to_leave(build: Build, clock: Clock) -> None:
    one, other = build(remote=8), build(remote=8)
    one.request(keys_of(A))
    one.request(keys_of(B))
    look(one, clock)  # tells the server
    look(other, clock)
    other.request(keys_of(A))
    look(other, clock)
    look(one, clock)
    one.request(keys_of(C))
    third = build()
    assert third.cache.match(keys_of(A)) == [Tier.REMOTE] * 4
    assert third.cache.match(keys_of(B)) == []


def test_a_damaged_value_is_a_miss_counted_and_removed(build: Build, kv_server: ValkeyServer) -> None:
    one = build()
    one.request(keys_of(A))
    other = build()
    kv_server.client.setrange(value_name(keys_of(A)[1]), 290, b"?")
    lease = other.cache.acquire(keys_of(A), 4, {})
    assert lease is not None
    other.settle()
    assert lease.state is LeaseState.FAILED
    other.cache.release(lease)
    other.settle()
    assert not kv_server.client.exists(value_name(keys_of(A)[1]))
    stats = other.cache.stats()[Tier.REMOTE]
    assert (stats.errors["load"], stats.evicted_blocks["corrupt"]) == (1, 1)
    assert other.request(keys_of(A)) == [Tier.GPU]  # the first block had come before


# -- cascades ----------------------------------------------------------------------------------------------------------
def test_what_the_disk_evicts_goes_to_the_server_and_comes_back(build: Build, tmp_path: Path) -> None:
    rig = build(WriteMode.WRITE_BACK, cpu=2, disk=4, path=tmp_path)
    for words in (A, B, C, [4] * 4):
        rig.request(keys_of(words))
    assert rig.resident() == {Tier.GPU: 6, Tier.CPU: 2, Tier.DISK: 4, Tier.REMOTE: 4}
    assert len(list(tmp_path.rglob("*.kv"))) == 4
    assert rig.request(keys_of(A)) == [Tier.REMOTE] * 3


def test_a_file_that_is_damaged_on_its_way_is_neither_stored_nor_served(build: Build, tmp_path: Path) -> None:
    rig = build(WriteMode.WRITE_BACK, disk=4, path=tmp_path)
    for words in (A, B):
        rig.request(keys_of(words))
    for path in tmp_path.rglob("*.kv"):
        path.write_bytes(b"?" * path.stat().st_size)
    for words in (C, [4] * 4):
        rig.request(keys_of(words))
    stats = rig.cache.stats()
    assert stats[Tier.DISK].errors["load"] == stats[Tier.REMOTE].errors["store"] == 2
    assert stats[Tier.REMOTE].evicted_blocks["corrupt"] == 0
    rig.request(keys_of(A))  # the rig compares what it finds


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
    assert "nobody.sock" in rig.cache.stats()[Tier.REMOTE].health.last_error


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


def test_while_the_breaker_is_open_nothing_is_matched_and_stores_are_dropped_and_counted(
    build: Build, proxy: Proxy, clock: Clock
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
