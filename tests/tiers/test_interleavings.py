"""Any interleaving of requests, copies, failures and administration: books agree and no wrong byte is ever read.

Copies are made inside `poll`, so they stay under way between two steps for as long as Hypothesis likes.
"""

import errno
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.tiers.rig import GARBAGE, ROOT, Rig, config, content, keys_of, make_rig
from tiers import BlockKey, Lease, LeaseState, LoadChoice, Policy, RefusedError, Tier, WriteMode

WORDS = st.lists(st.integers(0, 1), min_size=1, max_size=5)
SHARES = st.sampled_from([0.2, 0.5, 1.0])
USED = st.sampled_from([Tier.GPU, Tier.CPU, Tier.DISK])


@dataclass
class Request:
    """A lease and what its request is going to compute."""

    lease: Lease
    keys: list[BlockKey]
    num_done: int = -1  # −1 until the lease was seen ready
    extra: int = 0
    origins: dict[BlockKey, Tier] = field(default_factory=dict)


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.read_when_cheaper: set[Tier] = set()

    @initialize(
        gpu=st.integers(5, 9),
        cpu=st.integers(0, 6),
        disk=st.integers(0, 8),
        mode=st.sampled_from(WriteMode),
        policy=st.sampled_from(Policy),
        quota=SHARES,
    )
    def build(self, gpu: int, cpu: int, disk: int, mode: WriteMode, policy: Policy, quota: float) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tierscope-test-")
        self.settings = config(
            gpu=gpu, cpu=cpu, disk=disk, path=Path(self.folder.name), mode=mode, policy=policy, quota=quota
        )
        self.known: set[tuple[BlockKey, ...]] = set()
        self.start()

    def start(self) -> None:
        self.rig: Rig = make_rig(self.settings)
        self.cache = self.rig.cache
        self.requests: list[Request] = []
        self.read_when_cheaper.clear()

    # -- requests ----------------------------------------------------------------------------------------------------
    @rule(words=WORDS, extra=st.integers(0, 2))
    def acquire(self, words: list[int], extra: int) -> None:
        keys = keys_of(words)
        hittable = keys if extra else keys[:-1]
        if len(keys) + extra > self.cache.stats()[Tier.GPU].capacity_blocks:
            return
        expected, obtainable = self.cache.match(hittable), self.cache.num_obtainable
        origins: dict[BlockKey, Tier] = {}
        lease = self.cache.acquire(hittable, len(keys) + extra, origins, str(words[0]))
        if lease is None:
            is_shrinking = self.cache.stats()[Tier.GPU].capacity_blocks < self.rig.pool.num_blocks
            assert is_shrinking or obtainable < len(keys) + extra
            return
        assert lease.hit_tiers + lease.skipped_tiers == expected
        assert lease.hit_tiers == [origins[key] for key in hittable[: len(lease.hit_tiers)]]
        assert set(lease.skipped_tiers) <= self.read_when_cheaper
        self.known.add(tuple(keys))
        self.requests.append(Request(lease, keys, -1, extra, origins))
        self.look_at(self.requests[-1])

    def look_at(self, request: Request) -> None:
        """What the engine does with a lease that became ready: write into its own blocks at once."""
        if request.num_done >= 0 or request.lease.state is not LeaseState.READY:
            return
        request.num_done = len(request.lease.hit_tiers)
        for slot in request.lease.block_ids[request.num_done :]:
            self.rig.pool.write(slot, GARBAGE)

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), num_blocks=st.integers(1, 3))
    def compute(self, data: st.DataObject, num_blocks: int) -> None:
        request = data.draw(st.sampled_from(self.requests))
        first = request.num_done
        keys = request.keys[first : first + num_blocks] if first >= 0 else []
        for index, key in enumerate(keys, first):
            self.rig.pool.write(request.lease.block_ids[index], content(key))
        if keys:
            self.cache.register(request.lease, first, keys, request.keys[first - 1] if first else ROOT)
            request.num_done += len(keys)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.requests))
        if request.num_done >= 0 and self.cache.extend(request.lease):
            self.rig.pool.write(request.lease.block_ids[-1], GARBAGE)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.requests))
        self.requests.remove(request)
        self.cache.release(request.lease)

    @rule()
    def poll(self) -> None:
        self.cache.poll()
        for request in self.requests:
            self.look_at(request)

    # -- administration and accidents --------------------------------------------------------------------------------
    @rule(tier=USED, num_blocks=st.integers(0, 12))
    def resize(self, tier: Tier, num_blocks: int) -> None:
        try:
            self.rig.resize(tier, num_blocks)
        except RefusedError:
            assert (tier, num_blocks) == (Tier.GPU, 0)

    @rule(tier=USED)
    def clear(self, tier: Tier) -> None:
        stats = self.cache.stats()[tier]
        assert self.cache.clear(tier) == stats.resident_blocks - stats.pinned_blocks

    @rule(tier=USED, mode=st.sampled_from(WriteMode))
    def configure(self, tier: Tier, mode: WriteMode) -> None:
        self.cache.configure(tier, write_mode=mode)

    @rule(tier=USED, share=SHARES)
    def limit_tenants(self, tier: Tier, share: float) -> None:
        self.cache.configure(tier, tenant_quota=share)

    @rule(tier=USED, num_hits=st.integers(1, 3))
    def wait_for_hits(self, tier: Tier, num_hits: int) -> None:
        self.cache.configure(tier, store_after_hits=num_hits)

    @rule(tier=USED, load=st.sampled_from(LoadChoice))
    def choose_loads(self, tier: Tier, load: LoadChoice) -> None:
        self.cache.configure(tier, load=load)
        self.read_when_cheaper.discard(tier)
        if load is LoadChoice.WHEN_CHEAPER:
            self.read_when_cheaper.add(tier)

    @rule(seconds=st.sampled_from([0.0, 10.0]))
    def compute_faster_or_slower(self, seconds: float) -> None:
        self.cache.prefill_seconds = lambda position, num_tokens: seconds

    @rule(tier=USED, policy=st.sampled_from(Policy))
    def change_policy(self, tier: Tier, policy: Policy) -> None:
        self.cache.configure(tier, policy=policy)

    @rule(data=st.data(), position=st.integers(0, 319))
    def damage_a_file(self, data: st.DataObject, position: int) -> None:
        files = sorted(Path(self.folder.name).rglob("*.kv"))
        if files:
            path = data.draw(st.sampled_from(files))
            damaged = bytearray(path.read_bytes())
            damaged[position] ^= 1
            path.write_bytes(damaged)

    @rule(is_full=st.booleans())
    def fill_the_disk(self, is_full: bool) -> None:
        def refuse(*_: object) -> None:
            self.cache._parts.disk.drop_spare()  # type: ignore[union-attr]  # what it would have been written over
            raise OSError(errno.ENOSPC, "No space left on device")

        disk = self.cache._parts.disk
        assert disk is not None
        vars(disk).pop("write", None)
        if is_full:
            disk.write = refuse  # type: ignore[assignment, method-assign]

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        """Requests are aborted. Without a flush, what was under way is lost; what lies on disk is found and no more."""
        for request in self.requests:
            self.cache.release(request.lease)
        if is_clean:
            self.cache.flush(float("inf"))
        self.cache.close()
        files = {bytes.fromhex(path.stem) for path in Path(self.folder.name).rglob("*.kv")}
        self.start()
        for keys in self.known:
            for key, tier in zip(keys, self.cache.match(keys), strict=False):
                assert tier is not Tier.DISK or key in files

    # -- what holds always -------------------------------------------------------------------------------------------
    @invariant()
    def books_agree(self) -> None:
        if hasattr(self, "cache"):
            self.cache.check()

    @invariant()
    def ready_leases_read_the_right_bytes(self) -> None:
        for request in getattr(self, "requests", []):
            for index in range(max(0, request.num_done)):
                slot = request.lease.block_ids[index]
                assert self.rig.pool.read(slot) == content(request.keys[index]), "a wrong byte is read"

    @invariant()
    def sizes_hold(self) -> None:
        """The folder never outgrows the tier but for files that are being read or removed."""
        if hasattr(self, "cache") and not self.cache.num_transfers:
            stats = self.cache.stats()[Tier.DISK]
            assert len(list(Path(self.folder.name).rglob("*.kv"))) == stats.resident_blocks
            assert not list(Path(self.folder.name).rglob("*.tmp")), "a file is kept for a block that does not come"
            assert all(level.num_arriving == level.num_coming == 0 for level in self.cache._parts.levels[1:])

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        for request in self.requests:
            self.cache.release(request.lease)
        self.rig.settle()
        stats = self.cache.stats()
        own = [stats[tier] for tier in (Tier.GPU, Tier.CPU, Tier.DISK)]  # others may store more than is stored here
        assert all(tier.resident_blocks <= tier.capacity_blocks for tier in own)
        assert stats[Tier.GPU].capacity_blocks == self.rig.pool.num_blocks
        for keys in self.known:
            if len(keys) <= self.rig.pool.num_blocks:
                lease = self.rig.acquire(keys)
                for key, slot in zip(keys[: len(lease.hit_tiers)], lease.block_ids, strict=False):
                    assert lease.state is LeaseState.FAILED or self.rig.pool.read(slot) == content(key)
                self.cache.release(lease)
                self.rig.settle()
        self.cache.close()
        self.folder.cleanup()


TestInterleavings = CacheMachine.TestCase
TestInterleavings.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
