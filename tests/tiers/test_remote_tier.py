"""The fourth tier as an engine and its administrator see it: what engines share, and what comes down to it."""

import time
from pathlib import Path

import pytest

from tests.tiers.rig import SLAB, Build, Clock, EndlessMachine, config, keys_of, look, make_rig, value_name
from tests.tiers.valkey import ValkeyServer
from tiers import LeaseState, MemoryPool, Tier, TieredCache, WriteMode

A, B, C = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]


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
