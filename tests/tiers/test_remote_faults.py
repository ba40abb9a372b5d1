"""A server that is slow, refuses, hangs, closes half-way, talks nonsense or is restarted: bounded time, then misses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.tiers.proxy import Mode, Proxy
from tests.tiers.rig import ROOT, content, into, keys_of
from tests.tiers.valkey import ValkeyServer
from tiers import SlabSpec
from tiers.breaker import BreakerState
from tiers.errors import UnreachableError
from tiers.remote import NO_LIMIT, RemoteStore
from tiers.remote_writer import Outgoing

KEYS = keys_of([1, 2, 3, 4])
# Large enough that a slow connection does not get a block through in time.
SLAB = SlabSpec(1 << 20, "uint8", (1 << 20,))
# While it misbehaves; a server that is well may be as slow as a busy machine makes it.
TIMEOUT, PATIENT = 0.3, 30.0
FAULTS: list[Mode] = ["hang", "slow", "close_mid_way", "reset", "nonsense"]
# Far above what is promised, so that a busy machine fails nothing, and far below what waiting for each would take.
PATIENCE = 20 * TIMEOUT


def block(key: bytes) -> memoryview:
    return memoryview(content(key) * (SLAB.num_bytes // len(content(key))))


def outgoing() -> list[Outgoing]:
    return [Outgoing(key, KEYS[i - 1] if i else ROOT, i, block(key)) for i, key in enumerate(KEYS)]


class Rig:
    """A store that reaches a server through a proxy; what it has stored is there."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.proxy = Proxy(server.socket)
        self.store = RemoteStore(self.proxy.url, SLAB, 4, "test", timeout_seconds=PATIENT)
        self.store.breaker._first_wait = self.store.breaker._wait = 0.05

    def misbehave(self, fault: Mode, bytes_per_second: int = 50_000) -> None:
        self.proxy.mode, self.proxy.bytes_per_second = fault, bytes_per_second
        for line in self.store._lines:
            line._timeout = TIMEOUT

    def behave(self) -> None:
        self.proxy.mode = "pass"
        self.proxy.cut()
        for line in self.store._lines:
            line._timeout = PATIENT

    def read(self) -> list[Exception | None]:
        self.targets = [bytearray(SLAB.num_bytes) for _ in KEYS]
        with self.in_time():
            errors = self.store.read_many(KEYS, into(self.targets))
        for key, target, error in zip(KEYS, self.targets, errors, strict=True):
            assert error is not None or target == block(key), "a read gave other bytes than were stored"
        return errors

    def write(self) -> list[OSError | None]:
        with self.in_time():
            return self.store.write_many(outgoing(), NO_LIMIT)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        started_at = time.monotonic()
        yield
        is_well = self.proxy.mode == "pass"
        assert is_well or time.monotonic() - started_at < PATIENCE, "it takes longer than it may"

    def recover(self) -> None:
        """As the cache does it: probe until one gets through."""
        deadline = time.monotonic() + 30
        while self.store.breaker.state is not BreakerState.CLOSED:
            assert time.monotonic() < deadline, "the breaker does not close"
            if self.store.breaker.begin_probe():
                with suppress(UnreachableError):
                    assert self.store.look(is_probe=True).news.is_full
            time.sleep(0.01)


@pytest.fixture
def rig(kv_server: ValkeyServer) -> Iterator[Rig]:
    rig = Rig(kv_server)
    rig.store.look()
    assert rig.write() == [None] * 4
    assert rig.read() == [None] * 4
    yield rig
    rig.store.close()
    rig.proxy.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_reads_fail_within_a_bounded_time_and_work_again_when_the_server_does(rig: Rig, fault: Mode) -> None:
    rig.misbehave(fault)
    assert isinstance(rig.read()[-1], UnreachableError)
    rig.behave()
    assert rig.read() == [None] * 4
    assert rig.store.look().news.is_full


@pytest.mark.parametrize("fault", FAULTS)
def test_writes_fail_within_a_bounded_time_and_work_again_when_the_server_does(rig: Rig, fault: Mode) -> None:
    rig.store.remove_many(KEYS)
    rig.misbehave(fault, bytes_per_second=20)
    errors = rig.write()
    assert all(isinstance(error, UnreachableError) for error in errors)
    rig.behave()
    assert rig.write() == [None] * 4
    assert rig.read() == [None] * 4


@pytest.mark.parametrize("fault", FAULTS)
def test_after_three_failures_nothing_is_asked_until_a_probe_gets_through(rig: Rig, fault: Mode) -> None:
    rig.misbehave(fault)
    for _ in range(3):
        rig.read()
    assert rig.store.breaker.state is BreakerState.OPEN
    with pytest.raises(UnreachableError, match="not asked, because it failed before"):
        raise rig.read()[0] or AssertionError
    with pytest.raises(UnreachableError, match="not asked"):
        raise rig.write()[0] or AssertionError
    rig.behave()
    rig.recover()
    assert rig.read() == [None] * 4


def test_a_refusing_server_is_a_miss_and_comes_back(rig: Rig) -> None:
    rig.proxy.refuse()
    for _ in range(3):
        assert isinstance(rig.read()[0], UnreachableError)
    assert "refused" in rig.store.breaker.last_error
    rig.proxy.listen()
    rig.recover()
    assert rig.read() == [None] * 4


def test_blocks_that_came_before_a_connection_broke_are_good(rig: Rig) -> None:
    rig.misbehave("slow", bytes_per_second=6 << 20)  # two blocks or so until the time is over
    errors = rig.read()
    assert isinstance(errors[-1], UnreachableError)
    assert errors == sorted(errors, key=lambda error: error is not None)


def test_a_read_that_waited_too_long_for_its_turn_says_nothing_against_the_server(rig: Rig) -> None:
    for _ in range(5):
        errors = rig.store.read_many(KEYS, lambda portion, fill: {}, not_after=time.monotonic() - 1)
        assert all(isinstance(error, UnreachableError) for error in errors)
    assert rig.store.breaker.state is BreakerState.CLOSED
    assert rig.read() == [None] * 4


def test_a_server_that_was_restarted_between_two_uses_fails_nothing(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path).start()
    store = RemoteStore(server.url, SLAB, 4, "test", timeout_seconds=PATIENT)
    try:
        store.look()
        assert store.write_many(outgoing(), NO_LIMIT) == [None] * 4
        store.read(KEYS[0], memoryview(bytearray(SLAB.num_bytes)))
        server.kill()
        server.start()
        assert store.write_many(outgoing()[:1], NO_LIMIT) == [None]
        store.read(KEYS[0], memoryview(bytearray(SLAB.num_bytes)))
        news = store.look().news
        assert (news.is_full, [entry.key for entry in news.used]) == (True, KEYS[:1])
        assert store.breaker.last_error == ""
    finally:
        store.close()
        server.kill()


def test_a_password_is_used_and_never_told(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, password="correct-horse").start()
    stores = [
        RemoteStore(f"unix://:{word}@{server.socket}", SLAB, 4, "test", timeout_seconds=PATIENT)
        for word in ("correct-horse", "battery-staple")
    ]
    try:
        stores[0].look()
        assert stores[0].write_many(outgoing(), NO_LIMIT) == [None] * 4
        with pytest.raises(UnreachableError) as caught:
            stores[1].look()
        assert "battery" not in str(caught.value) + stores[1].breaker.last_error
    finally:
        for store in stores:
            store.close()
        server.kill()


@pytest.mark.parametrize("url", ["http://127.0.0.1", "redis://127.0.0.1?no_such_option=1", "redis://127.0.0.1:port"])
def test_a_url_that_cannot_be_used_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|port|scheme"):
        RemoteStore(url, SLAB, 4, "test")
