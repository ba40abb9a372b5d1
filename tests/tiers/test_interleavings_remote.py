"""Any interleaving as in test_interleavings, over a server that other engines fill, use and empty, and that fails.

One real server for all examples, a namespace for each.
"""

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.tiers.rig import ROOT, SLAB, config, content, keys_of, make_rig
from tests.tiers.test_interleavings import SHARES, WORDS, CacheMachine
from tests.tiers.valkey import ValkeyServer
from tiers import LeaseState, Tier, WriteMode
from tiers.node import copies
from tiers.remote import NO_LIMIT, RemoteStore
from tiers.remote_writer import Outgoing


@pytest.fixture(scope="module", autouse=True)
def server(running_kv_server: ValkeyServer) -> Iterator[None]:
    """A machine's class cannot take fixtures."""
    RemoteCacheMachine.server = running_kv_server
    yield
    del RemoteCacheMachine.server


LONG_WORDS = st.lists(st.integers(0, 1), min_size=4, max_size=5)


class RemoteCacheMachine(CacheMachine):
    server: ValkeyServer

    @initialize(
        gpu=st.integers(5, 7),
        cpu=st.integers(0, 3),
        disk=st.integers(0, 3),
        remote=st.integers(0, 12),
        mode=st.sampled_from(WriteMode),
    )
    def build(self, gpu: int, cpu: int, disk: int, mode: WriteMode, remote: int = 0) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tierscope-test-")
        self.now, name, url = 100.0, uuid.uuid4().hex, self.server.url
        path = Path(self.folder.name)
        self.settings = config(
            gpu=gpu, cpu=cpu, disk=disk, remote=remote, path=path, url=url, mode=mode, fingerprint=name
        )
        self.known = set()
        self.start()
        self.others = RemoteStore(url, SLAB, 4, name, timeout_seconds=60)

    def start(self) -> None:
        self.rig = make_rig(self.settings, clock=lambda: self.now)
        self.cache, self.requests = self.rig.cache, []
        self.read_when_cheaper.clear()
        store = self.cache._parts.remote
        assert store is not None
        self.store = store

    @rule(words=LONG_WORDS, is_settled=st.booleans())
    def whole_request(self, words: list[int], is_settled: bool) -> None:
        """From start to end, so that blocks get around; the other rules take many steps for that."""
        keys = keys_of(words)
        has_room = self.cache.num_obtainable >= len(keys)
        lease = self.cache.acquire(keys[:-1], len(keys), {}, str(words[0])) if has_room else None
        if lease is None:
            return
        self.rig.settle()
        for tier in set(lease.hit_tiers):
            event(f"a request reads from {tier}: {lease.state}")
        if lease.state is LeaseState.READY:
            self.rig.compute(lease, keys)
            self.known.add(tuple(keys))
        self.cache.release(lease)
        if is_settled:
            self.rig.settle()

    @rule(prompts=st.lists(LONG_WORDS, min_size=3, max_size=6))
    def many_requests(self, prompts: list[list[int]]) -> None:
        for words in prompts:
            self.whole_request(words, False)

    # -- others ------------------------------------------------------------------------------------------------------
    @rule(words=WORDS)
    def others_store(self, words: list[int]) -> None:
        keys = keys_of(words)
        parents = [ROOT, *keys]
        blocks = [Outgoing(key, parents[i], i, memoryview(content(key))) for i, key in enumerate(keys)]
        assert self.others.write_many(blocks[::-1], NO_LIMIT) == [None] * len(blocks)

    @rule(words=WORDS)
    def others_use(self, words: list[int]) -> None:
        self.others.touch_many(keys_of(words)[::-1])

    @rule(words=WORDS)
    def others_remove(self, words: list[int]) -> None:
        self.others.remove_many(keys_of(words)[-1:])

    # -- accidents ---------------------------------------------------------------------------------------------------
    @rule(words=WORDS, position=st.integers(0, 319))
    def damage_a_value(self, words: list[int], position: int) -> None:
        name = self.store.prefix + b"b:" + keys_of(words)[-1]
        value = self.server.client.get(name)
        if isinstance(value, bytes):
            self.server.client.setrange(name, position, bytes([value[position] ^ 1]))

    @rule(words=WORDS)
    def lose_a_value(self, words: list[int]) -> None:
        self.server.client.delete(self.store.prefix + b"b:" + keys_of(words)[-1])

    @rule()
    def lose_all(self) -> None:
        names = list(self.server.client.scan_iter(match=self.store.prefix + b"*", count=1000))
        if names:
            self.server.client.delete(*names)

    @rule(is_down=st.sampled_from([False, False, True]))
    def fail(self, is_down: bool) -> None:
        def refuse(deadline: float) -> None:
            raise ConnectionError("connection refused")

        for line in self.store._lines:
            vars(line.wire).pop("open", None)
            if is_down:
                line.wire.open = refuse  # type: ignore[method-assign]

    @rule(seconds=st.sampled_from([0.1, 1.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(num_blocks=st.integers(0, 12))
    def resize_remote(self, num_blocks: int) -> None:
        self.rig.resize(Tier.REMOTE, num_blocks)

    @rule()
    def clear_remote(self) -> None:
        self.clear(Tier.REMOTE)

    @rule(share=SHARES)
    def limit_tenants_of_remote(self, share: float) -> None:
        self.cache.configure(Tier.REMOTE, tenant_quota=share)

    @rule(mode=st.sampled_from(WriteMode))
    def configure_remote(self, mode: WriteMode) -> None:
        self.cache.configure(Tier.REMOTE, write_mode=mode)

    # -- what holds always -------------------------------------------------------------------------------------------
    @precondition(lambda self: hasattr(self, "cache"))
    @invariant()
    def what_cannot_be_had_is_not_hit(self) -> None:
        if not self.store.breaker.is_closed and not self.cache.poll() and not self.cache.num_transfers:
            assert self.cache.stats()[Tier.REMOTE].resident_blocks == 0

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.fail(False)
        for request in self.requests:
            self.cache.release(request.lease)
        self.rig.settle()
        self.now += 1000  # for a probe, for a look, and for what that finds
        self.rig.settle()
        self.now += 1000
        self.rig.settle()
        assert self.cache.stats()[Tier.REMOTE].health.is_up
        if self.cache.stats()[Tier.REMOTE].capacity_blocks:
            there = {entry.key for entry in self.others.scan()}
            books = self.cache._parts.books
            known = {copy.node.key for copy in copies(books, books.live_copies(len(books.levels) - 1))}
            assert known == there, "what is known of the server is not what is there"
        self.others.close()
        self.requests = []
        super().teardown()


TestRemoteInterleavings = RemoteCacheMachine.TestCase
TestRemoteInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
