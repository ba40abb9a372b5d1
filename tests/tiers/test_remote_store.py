"""Many engines, one server: what each sees of the others, and the limits that whoever stores keeps."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tiers.rig import ROOT, SLAB, content, into, keys_of
from tests.tiers.valkey import ValkeyServer
from tiers.errors import GoneError, NoRoomError, UnreachableError
from tiers.keys import BlockKey
from tiers.remote import NO_LIMIT, RemoteStore
from tiers.remote_look import News
from tiers.remote_room import Room
from tiers.remote_writer import Outgoing

KEYS = keys_of(list(range(8)))
Open = Callable[..., RemoteStore]


@pytest.fixture
def open_store(kv_server: ValkeyServer) -> Iterator[Open]:
    stores: list[RemoteStore] = []

    def build(url: str = kv_server.url, fingerprint: str = "test", ttl: int = 3600) -> RemoteStore:
        stores.append(RemoteStore(url, SLAB, 4, fingerprint, ttl_seconds=ttl))
        return stores[-1]

    yield build
    for store in stores:
        store.close()


def outgoing(*positions: int) -> list[Outgoing]:
    """Blocks of one prompt."""
    return [
        Outgoing(KEYS[p], KEYS[p - 1] if p else ROOT, p, memoryview(content(KEYS[p]))) for p in positions
    ]  # fmt: skip


def write(store: RemoteStore, *positions: int, max_blocks: int = NO_LIMIT) -> None:
    assert store.write_many(outgoing(*positions), max_blocks) == [None] * len(positions)


def used(news: News) -> list[int]:
    return [entry.position for entry in news.used]


def keys(*positions: int) -> list[BlockKey]:
    return [KEYS[position] for position in positions]


# -- following ---------------------------------------------------------------------------------------------------------
def test_the_first_look_tells_all_and_the_next_ones_what_is_new(open_store: Open) -> None:
    mine, others = open_store(), open_store()
    write(others, 1, 0)
    first = mine.look().news
    assert (first.is_full, used(first), first.num_blocks) == (True, [1, 0], 2)
    write(others, 2)
    others.touch_many(keys(1))
    second = mine.look().news
    assert (second.is_full, used(second), second.num_blocks) == (False, [2, 1], 3)
    third = mine.look().news
    assert (used(third), third.gone) == ([], [])


def test_what_one_did_oneself_is_no_news(open_store: Open) -> None:
    mine, others = open_store(), open_store()
    mine.look()
    write(mine, 2, 1, 0)
    mine.touch_many(keys(1))
    assert used(mine.look().news) == []
    write(mine, 3)
    others.touch_many(keys(3))
    assert used(mine.look().news) == [3]


def test_what_anybody_removed_is_gone_until_it_is_stored_again(open_store: Open) -> None:
    mine, others = open_store(), open_store()
    write(others, 1, 0)
    mine.look()
    others.remove_many(keys(0, 1))
    write(others, 0)
    news = mine.look().news
    assert (used(news), news.gone) == ([0], keys(1))


def test_a_long_index_comes_in_pages(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiers.remote_look.PAGE_BLOCKS", 2)
    mine, others = open_store(), open_store()
    write(others, 4, 3, 2, 1, 0)
    assert used(mine.look().news) == [4, 3, 2, 1, 0]
    write(others, 7, 6, 5)
    others.remove_many(keys(0, 1, 2, 3, 4))
    news = mine.look().news
    assert (used(news), news.gone) == ([7, 6, 5], keys(0, 1, 2, 3, 4))


def test_who_has_not_looked_for_too_long_sees_all_again(open_store: Open, kv_server: ValkeyServer) -> None:
    mine, others = open_store(), open_store()
    write(others, 1, 0)
    mine.look()
    last = int(kv_server.client.hget(others.prefix + b"meta", "last") or 0)
    left = {b"%016d" % number: last + number for number in range(1, 10_001)}  # as many as are remembered
    kv_server.client.zadd(others.prefix + b"gone", left)
    kv_server.client.hset(others.prefix + b"meta", "last", str(last + 10_000))
    write(others, 5)
    others.remove_many(keys(5))
    news = mine.look().news
    assert (news.is_full, used(news)) == (True, [1, 0])


def test_a_namespace_that_began_anew_is_seen_whole(open_store: Open, kv_server: ValkeyServer) -> None:
    mine, others = open_store(), open_store()
    write(others, 1, 0)
    mine.look()
    kv_server.client.flushall()
    write(others, 3)
    news = mine.look().news
    assert (news.is_full, used(news)) == (True, [3])


def test_after_a_failure_all_is_looked_at_again(open_store: Open) -> None:
    mine = open_store()
    write(mine, 0)
    mine.look()
    late = mine.read_many(keys(0), lambda portion, fill: {}, not_after=0.0)
    assert isinstance(late[0], UnreachableError)
    assert mine.look().news.is_full


# -- reading -----------------------------------------------------------------------------------------------------------
def test_each_block_of_a_batch_has_its_own_outcome(open_store: Open, kv_server: ValkeyServer) -> None:
    store = open_store()
    write(store, 3, 2, 1, 0)
    kv_server.client.delete(store.prefix + b"b:" + KEYS[1])
    kv_server.client.set(store.prefix + b"b:" + KEYS[2], b"something else that is not a block at all")
    targets = [bytearray(SLAB.num_bytes) for _ in range(4)]
    errors = store.read_many(keys(0, 1, 2, 3), into(targets))
    assert [type(error).__name__ for error in errors] == ["NoneType", "GoneError", "CorruptError", "NoneType"]
    assert [bytes(targets[i]) for i in (0, 3)] == [content(KEYS[0]), content(KEYS[3])]


@pytest.mark.parametrize("portion_blocks", [1, 2, 3, 100])
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_more_blocks_than_are_asked_for_at_once_all_come(
    open_store: Open, monkeypatch: pytest.MonkeyPatch, portion_blocks: int, is_encrypted: bool
) -> None:
    if is_encrypted:  # such sockets are read value by value
        monkeypatch.setattr("ssl.SSLSocket", socket.socket)
    store = open_store()
    monkeypatch.setattr("tiers.remote_reader.PORTION_BYTES", portion_blocks * store.value_bytes)
    store = open_store()
    write(store, 7, 6, 5, 3, 2, 1, 0)
    targets = [bytearray(SLAB.num_bytes) for _ in range(8)]
    errors = store.read_many(KEYS, into(targets))
    assert [index for index, error in enumerate(errors) if error] == [4]
    assert [bytes(target) for target in targets[:4]] == [content(key) for key in KEYS[:4]]
    assert [bytes(target) for target in targets[5:]] == [content(key) for key in KEYS[5:]]


def test_a_stored_block_is_not_sent_again(open_store: Open, kv_server: ValkeyServer) -> None:
    one, other = open_store(), open_store()
    write(one, 0)
    before = kv_server.client.info("commandstats")["cmdstat_set"]["calls"]
    write(other, 0)
    assert kv_server.client.info("commandstats")["cmdstat_set"]["calls"] == before


# -- limits ------------------------------------------------------------------------------------------------------------
def test_who_stores_makes_the_longest_unused_leave_and_touches_nothing_else(
    open_store: Open, kv_server: ValkeyServer
) -> None:
    store, stranger = open_store(), open_store(fingerprint="another model")
    kv_server.client.set("celery", "the broker's")
    write(stranger, 1, 0)
    write(store, 4, 3, 2, 1, 0, max_blocks=5)
    store.touch_many(keys(4))
    write(store, 6, 5, max_blocks=5)
    look = store.look()
    assert (used(open_store().look().news), look.num_trimmed) == ([1, 0, 4, 6, 5], 2)
    with pytest.raises(GoneError):
        store.read(KEYS[3], memoryview(bytearray(SLAB.num_bytes)))
    assert kv_server.client.get("celery") == b"the broker's"
    assert used(stranger.look().news) == [1, 0]


def test_blocks_that_nobody_used_for_too_long_leave(open_store: Open, kv_server: ValkeyServer) -> None:
    store = open_store(ttl=100)
    write(store, 2, 1, 0)
    index = store.prefix + b"index"
    for position in (2, 1):
        kv_server.client.zincrby(index, -101_000_000, KEYS[position])
    news = store.look().news
    assert (news.num_expired, news.num_blocks) == (2, 1)
    assert kv_server.client.exists(store.prefix + b"b:" + KEYS[2]) == 0
    assert used(open_store().look().news) == [0]


def test_everything_of_a_namespace_dies_with_its_engines(open_store: Open, kv_server: ValkeyServer) -> None:
    store = open_store(ttl=100)
    write(store, 2, 1, 0)
    store.touch_many(keys(1))
    store.remove_many(keys(2))
    store.look()
    names = list(kv_server.client.scan_iter(match="ts:kv:*"))
    assert len(names) == 6
    assert all(0 < kv_server.client.ttl(name) <= 160 for name in names)


@pytest.fixture
def full_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction").start()
    yield server
    server.kill()


def fill(server: ValkeyServer, num_bytes: int) -> int:
    """The broker's, in values of 100 kB; how many."""
    count = num_bytes // 100_000
    for number in range(count):
        server.client.set(f"celery-{number}", b"x" * 100_000)
    return count


def test_a_server_that_is_nearly_full_takes_no_block_and_keeps_what_it_has(
    open_store: Open, full_server: ValkeyServer
) -> None:
    store = open_store(url=full_server.url)
    room = store.look().room
    assert room.limit_bytes == 64 << 20
    count = fill(full_server, room.free_bytes)
    assert store.look().room.free_bytes == 0
    [error] = store.write_many(outgoing(0), NO_LIMIT)
    assert isinstance(error, NoRoomError)
    assert full_server.client.dbsize() == count + 1  # and the namespace's name
    full_server.client.delete("celery-0", "celery-1")
    store.look()
    write(store, 0)


def test_between_two_looks_no_more_is_written_than_there_was_room_for(
    open_store: Open, full_server: ValkeyServer
) -> None:
    store = open_store(url=full_server.url)
    fill(full_server, store.look().room.free_bytes - 100_000)
    free = store.look().room.free_bytes
    num_fit = free // store.value_bytes
    blocks = [Outgoing(b"%016d" % n, ROOT, 0, memoryview(content(KEYS[0]))) for n in range(num_fit + 3)]
    assert store.write_many(blocks, NO_LIMIT).count(None) == num_fit
    store.remove_many([blocks[0].key, blocks[1].key])
    assert store.write_many(blocks[:2], NO_LIMIT) == [None, None]
    assert isinstance(store.write_many(blocks[-1:], NO_LIMIT)[0], NoRoomError)


def test_a_server_that_is_out_of_memory_is_not_held_for_dead(open_store: Open, full_server: ValkeyServer) -> None:
    store = open_store(url=full_server.url)
    store.look()
    write(store, 1)
    full_server.client.config_set("maxmemory", "1mb")  # less than it uses, and nobody has looked since
    for _ in range(5):
        [error] = store.write_many(outgoing(0), NO_LIMIT)
        assert isinstance(error, NoRoomError)
    store.touch_many(keys(1))
    assert store.look().room.max_bytes == store.value_bytes  # what is there may stay
    store.remove_many(keys(1))
    assert store.look().news.num_blocks == 0
    full_server.client.config_set("maxmemory", "0")
    store.look()
    write(store, 0)


INFO = b"# Memory\r\nused_memory:%d\r\ntotal_system_memory:4000\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n"


def test_room_is_what_the_server_may_use_less_a_tenth_and_what_others_have() -> None:
    room = Room.parse(INFO % (500, 1000, b"noeviction"), own_bytes=300)
    assert (room.free_bytes, room.max_bytes, room.warning) == (400, 700, "")
    unlimited = Room.parse(INFO % (500, 0, b"noeviction"), own_bytes=0)
    assert unlimited.max_bytes == 2000 - 200 - 500
    assert Room.parse(INFO % (999, 1000, b"noeviction"), own_bytes=0).max_bytes == 0


def test_a_server_that_throws_keys_out_is_warned_about() -> None:
    assert "allkeys-lru" in Room.parse(INFO % (500, 1000, b"allkeys-lru"), 0).warning


def test_a_server_that_tells_no_memory_is_none() -> None:
    with pytest.raises(ValueError, match="does not tell"):
        Room.parse(b"# Nothing", 0)
