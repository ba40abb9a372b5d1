"""What a request may rely on while it holds a lease, and what an administrator is refused."""

from pathlib import Path

import pytest

from tests.tiers.rig import ROOT, SLAB, EndlessMachine, Rig, block_bytes, config, content, keys_of, make_rig
from tiers import (
    TIERS,
    CacheConfig,
    CapacityError,
    Lease,
    LeaseState,
    MachineLimits,
    MemoryPool,
    RefusedError,
    SlabSpec,
    Tier,
    TierConfig,
    TieredCache,
    WriteMode,
)

A, B = [1, 1, 1, 1], [2, 2, 2, 2]


class SmallMachine(MachineLimits):
    """A machine with room for so many blocks."""

    def __init__(self, num_blocks: int) -> None:
        super().__init__()
        self.num_blocks = num_blocks

    def max_bytes(self, tier: Tier, *, held_bytes: int = 0, path: Path | None = None) -> int:
        return self.num_blocks * block_bytes(tier)


def take(rig: Rig, num_blocks: int) -> Lease:
    lease = rig.cache.acquire([], num_blocks, {})
    assert lease is not None
    return lease


def test_more_than_the_gpu_tier_has_is_an_error_and_more_than_is_free_a_wait() -> None:
    rig = make_rig(config(gpu=4))
    with pytest.raises(CapacityError, match="5 blocks are needed and the gpu tier holds 4"):
        rig.cache.acquire([], 5, {})
    lease = take(rig, 3)
    assert rig.cache.num_obtainable == 1
    assert rig.cache.acquire([], 2, {}) is None
    rig.cache.release(lease)
    assert rig.cache.acquire([], 2, {}) is not None


def test_what_a_lease_reads_is_never_evicted() -> None:
    rig = make_rig(config(gpu=6))
    rig.request(keys_of(A))
    reader = rig.acquire(keys_of(A))
    assert rig.cache.acquire([], 3, {}) is None
    writer = take(rig, 2)
    for slot in writer.block_ids:
        rig.pool.write(slot, b"\0" * SLAB.num_bytes)
    for key, slot in zip(keys_of(A), reader.block_ids, strict=True):
        assert rig.pool.read(slot) == content(key)


def test_two_requests_that_compute_the_same_blocks_share_the_first_ones_and_free_the_others() -> None:
    rig = make_rig(config(gpu=8))
    first, second = take(rig, 4), take(rig, 4)
    rig.compute(first, keys_of(A))
    rig.compute(second, keys_of(A))
    assert set(first.block_ids).isdisjoint(second.block_ids)
    rig.cache.release(first)
    rig.cache.check()
    assert rig.cache.num_obtainable == 0  # the second still reads along
    rig.cache.release(second)
    rig.cache.check()
    assert rig.resident()[Tier.GPU] == 4
    assert rig.cache.num_obtainable == 8


def test_concurrent_first_requests_all_miss() -> None:
    rig = make_rig(config(gpu=8))
    keys = keys_of(A)
    leases = [rig.cache.acquire(keys, 4, {}) for _ in range(2)]
    assert [lease.hit_tiers for lease in leases if lease] == [[], []]


def test_two_requests_for_a_block_that_is_being_loaded_wait_for_one_load() -> None:
    rig = make_rig(config(gpu=8, cpu=8))
    rig.request(keys_of(A))
    rig.request([*keys_of(B), *keys_of([2, 2, 2, 2, 2, 2, 2, 2])[4:]])
    rig.settle()
    first = rig.cache.acquire(keys_of(A), 4, {})
    second = rig.cache.acquire(keys_of(A), 4, {})
    assert first is not None
    assert second is not None
    assert first.hit_tiers == second.hit_tiers == [Tier.CPU] * 4
    assert first.block_ids == second.block_ids
    assert {first.state, second.state} == {LeaseState.LOADING}
    rig.settle()
    assert {first.state, second.state} == {LeaseState.READY}
    assert rig.cache.stats()[Tier.CPU].loaded_blocks == 4


def test_a_request_that_was_sent_back_keeps_the_tiers_of_its_first_match() -> None:
    rig = make_rig(config(gpu=4, cpu=8))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    origins: dict[bytes, Tier] = {}
    lease = rig.cache.acquire(keys_of(A), 4, origins)
    assert lease is not None
    rig.cache.release(lease)  # while its copies are under way
    rig.settle()
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 4
    again = rig.cache.acquire(keys_of(A), 4, origins)
    assert again is not None
    assert again.hit_tiers == [Tier.CPU] * 4


def test_a_lease_grows_block_by_block_at_the_cost_of_what_nobody_reads() -> None:
    rig = make_rig(config(gpu=6, cpu=6))
    rig.request(keys_of(A))
    lease = take(rig, 2)
    assert not rig.cache.extend(lease)  # a block is on its way to cpu
    rig.settle()
    assert rig.cache.extend(lease)
    assert len(set(lease.block_ids)) == 3
    assert rig.resident() == {Tier.GPU: 3, Tier.CPU: 1, Tier.DISK: 0}


def test_a_lease_can_be_released_once_and_a_block_registered_once() -> None:
    rig = make_rig(config(gpu=4))
    lease = take(rig, 1)
    rig.compute(lease, keys_of([1]))
    with pytest.raises(ValueError, match="cached already"):
        rig.cache.register(lease, 0, keys_of([1]), ROOT)
    rig.cache.release(lease)
    with pytest.raises(ValueError, match="released already"):
        rig.cache.release(lease)


def test_the_gpu_tier_shrinks_under_running_requests_as_they_end() -> None:
    rig = make_rig(config(gpu=8, cpu=8))
    rig.request(keys_of(A))
    lease = take(rig, 4)
    rig.resize(Tier.GPU, 2)
    rig.settle()
    assert rig.resident() == {Tier.GPU: 0, Tier.CPU: 4, Tier.DISK: 0}
    assert rig.cache.stats()[Tier.GPU].capacity_blocks == 2
    assert rig.pool.num_blocks > 2  # the lease keeps its four
    rig.cache.release(lease)
    rig.settle()
    assert rig.pool.num_blocks == 2
    assert rig.request(keys_of([1, 1])) == [Tier.CPU]


def test_blocks_in_the_way_of_a_shrinking_pool_move_and_keep_their_bytes() -> None:
    rig = make_rig(config(gpu=8))
    lease = take(rig, 4)
    rig.request(keys_of(A))
    rig.cache.release(lease)
    rig.resize(Tier.GPU, 4)
    rig.settle()
    assert rig.pool.num_blocks == 4
    assert rig.request(keys_of(A)) == [Tier.GPU] * 3


def test_a_size_that_the_machine_cannot_give_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    settings = config(gpu=4, cpu=4, disk=4, path=tmp_path)
    pool = MemoryPool(SLAB, 4)
    cache = TieredCache(settings, pool, memory=SmallMachine(12))
    for tier in (Tier.GPU, Tier.CPU, Tier.DISK):
        with pytest.raises(RefusedError, match=f"The {tier} tier cannot have .* at most"):
            cache.resize(tier, 13 * block_bytes(tier))
        assert cache.stats()[tier].capacity_blocks == 4
    assert cache.max_bytes(Tier.DISK) == 12 * block_bytes(Tier.DISK)
    assert cache.max_bytes(Tier.CPU) == 8 * SLAB.num_bytes  # gpu, in the same memory, was promised four
    cache.resize(Tier.CPU, 8 * SLAB.num_bytes)


def test_a_reservation_that_is_too_small_refuses_growth() -> None:
    pool = MemoryPool(SLAB, 4, max_bytes=6 * SLAB.num_bytes)
    cache = TieredCache(config(gpu=4), pool, memory=EndlessMachine())
    with pytest.raises(RefusedError, match="the device cannot give 448 bytes: 7 blocks were asked for; 6 is what"):
        cache.resize(Tier.GPU, 7 * SLAB.num_bytes)
    assert cache.stats()[Tier.GPU].capacity_blocks == pool.num_blocks == 4


def test_sizes_that_make_no_sense_and_tiers_that_are_not_there_are_refused() -> None:
    rig = make_rig(config(gpu=4))
    with pytest.raises(RefusedError, match="expected 0 or more"):
        rig.cache.resize(Tier.CPU, -1)
    with pytest.raises(RefusedError, match="at least one block"):
        rig.cache.resize(Tier.GPU, 0)
    with pytest.raises(RefusedError, match="no disk tier"):
        rig.cache.resize(Tier.DISK, 1000)
    with pytest.raises(RefusedError, match="no remote tier"):
        rig.cache.clear(Tier.REMOTE)


def test_an_engine_with_sizes_beyond_the_machine_does_not_start() -> None:
    with pytest.raises(RefusedError):
        TieredCache(config(gpu=4), MemoryPool(SLAB, 4), memory=SmallMachine(3))


def test_a_tier_that_becomes_exclusive_gives_blocks_up_as_they_are_read(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, cpu=8, mode=WriteMode.WRITE_THROUGH))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    rig.cache.configure(Tier.CPU, write_mode=WriteMode.WRITE_BACK)
    rig.request(keys_of(A))
    rig.cache.check()
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 4
    assert rig.cache.match(keys_of(B)) == [Tier.CPU] * 4


def test_figures_of_every_tier_exist_from_the_start() -> None:
    stats = make_rig(config(gpu=4)).cache.stats()
    assert list(stats.tiers) == list(TIERS)
    reasons = {"capacity", "resize", "clear", "corrupt", "expired", "orphaned", "quota"}
    assert set(stats[Tier.REMOTE].evicted_blocks) == reasons
    assert stats[Tier.GPU].block_bytes == SLAB.num_bytes


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SlabSpec(0, "uint8", ()), "at least 1"),
        (lambda: TierConfig(Tier.CPU, -1), "expected 0 or more"),
        (lambda: TierConfig(Tier.CPU, 0, store_after_hits=0), "store_after_hits is 0; expected 1 or more"),
        (lambda: TierConfig(Tier.DISK, 10), "needs a folder"),
        (lambda: TierConfig(Tier.REMOTE, 10), "needs the URL"),
        (lambda: TierConfig(Tier.REMOTE, 10, url="http://x"), "needs the URL"),
        (lambda: TierConfig(Tier.REMOTE, 10, url="redis://x", ttl_seconds=0), "at least 1"),
        (lambda: CacheConfig(4, SLAB, "x", (TierConfig(Tier.CPU, 64),)), "expected gpu first"),
        (lambda: CacheConfig(0, SLAB, "x", (TierConfig(Tier.GPU, 64),)), "block_size is 0"),
        (lambda: CacheConfig(4, SLAB, "x", (TierConfig(Tier.GPU, 63),)), "at least one block"),
        (lambda: CacheConfig(4, SLAB, "x", (TierConfig(Tier.GPU, 64),), 9), "expected 0, 1 or 2"),
    ],
)
def test_a_bad_configuration_says_what_was_expected(make: type, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_a_block_that_leaves_its_last_tier_takes_those_after_it_along(tmp_path: Path) -> None:
    """Its child lies in cpu, itself only on disk, and the disk has to make room: nothing could find the child."""
    rig = make_rig(config(gpu=6, cpu=0, disk=1, path=tmp_path, mode=WriteMode.WRITE_THROUGH))
    chain = keys_of([1, 0])
    rig.request(chain)
    rig.resize(Tier.CPU, 6)
    lease = rig.acquire([], 6)
    assert rig.cache.match(chain) == [Tier.DISK, Tier.CPU]
    rig.compute(lease, keys_of([0] * 5))
    rig.cache.release(lease)
    rig.settle()
    assert rig.cache.match(chain) == []
    assert rig.resident() == {Tier.GPU: 5, Tier.CPU: 5, Tier.DISK: 1}
    assert rig.cache.num_orphans == 0
