"""How blocks move between tiers: every one that came, went and stayed is counted, as a list a tier counts them."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers.oracle import OracleHierarchy
from tests.tiers.policies.rig import LevelRig, key_of
from tests.tiers.rig import Rig, config, keys_of, make_rig
from tiers import TIERS, BlockKey, Policy, Tier, WriteMode
from tiers.books import requests
from tiers.eviction import Exit
from tiers.flows import MAX_DROPPED_KEYS, origins_of, ways_out_of
from tiers.keys import packed

MAX_BLOCKS = 6
PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=MAX_BLOCKS)
SIZES = st.tuples(st.integers(MAX_BLOCKS, 10), st.integers(0, 8), st.integers(0, 8))
A, B, C = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]


class Generations:
    """Dropped keys as two plain lists: the newest half of the tier's size, and the half before it."""

    def __init__(self, size: int) -> None:
        self.size, self.new, self.old = size // 2, list[BlockKey](), list[BlockKey]()

    def add(self, key: BlockKey) -> None:
        if self.size and len(self.new) >= self.size:
            self.new, self.old = [], self.new
        if self.size and key not in self.new:
            self.new.append(key)

    def take(self, key: BlockKey) -> bool:
        is_known = key in self.new or key in self.old
        self.new, self.old = ([other for other in keys if other != key] for keys in (self.new, self.old))
        return is_known


class CountingOracle(OracleHierarchy):
    """The oracle, which also writes down what is computed, loaded, dropped, and computed again soon after."""

    def __init__(self, sizes: Sequence[int], mode: WriteMode) -> None:
        super().__init__(sizes, mode)
        self.entered: Counter[tuple[Tier, str]] = Counter()
        self.dropped: Counter[Tier] = Counter()
        self.missed: Counter[Tier] = Counter()
        self.recent = [Generations(size) for size in sizes]
        self.hits: set[BlockKey] = set()

    def request(self, keys: Sequence[BlockKey], *, num_hittable: int, num_blocks: int) -> list[Tier]:
        self.hits = set(keys[: len(self.match(keys[:num_hittable]))])
        tiers = super().request(keys, num_hittable=num_hittable, num_blocks=num_blocks)
        for tier in tiers:
            self.entered[Tier.GPU, str(tier)] += tier is not Tier.GPU
        return tiers

    def _pin(self, key: BlockKey) -> None:
        if key not in self.hits and key not in self.order[0]:
            self.entered[Tier.GPU, "computed"] += 1
            for rank, recent in enumerate(self.recent):
                self.missed[TIERS[rank]] += recent.take(key)
        super()._pin(key)

    def _evict(self, rank: int, own: BlockKey | None = None) -> None:
        key = self.order[rank][0] if own is None else own
        super()._evict(rank, own)
        if not any(key in tier for tier in (*self.order, *self.pinned)):
            self.dropped[TIERS[rank]] += 1
            self.recent[rank].add(key)

    def _drop_after(self, gone: BlockKey) -> None:
        """Those that go along were not evicted themselves: they are dropped by the last tier that has them."""
        before = {key: rank for rank, order in enumerate(self.order) for key in order}
        super()._drop_after(gone)
        after = {key for order in self.order for key in order}
        self.dropped.update(TIERS[rank] for key, rank in before.items() if key not in after)


def compare(rig: Rig, oracle: CountingOracle) -> None:
    stats = rig.cache.stats()
    for rank, _ in enumerate(oracle.sizes):
        tier = TIERS[rank]
        told = stats[tier]
        told.check()
        assert told.resident_blocks == len(oracle.order[rank])
        assert told.left_blocks["dropped"] == oracle.dropped[tier], f"dropped by {tier}"
        assert told.missed_blocks == oracle.missed[tier], f"computed again after {tier} dropped it"
    entered = {str(origin): oracle.entered[Tier.GPU, origin] for origin in origins_of(Tier.GPU)}
    assert stats[Tier.GPU].entered_blocks == entered


@pytest.mark.parametrize("mode", WriteMode)
@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, prompts=st.lists(PROMPTS, min_size=1, max_size=40))
def test_what_is_computed_loaded_dropped_and_missed_is_what_a_list_a_tier_says(
    mode: WriteMode, sizes: tuple[int, int, int], prompts: list[list[int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gpu, cpu, disk = sizes
        rig = make_rig(config(gpu=gpu, cpu=cpu, disk=disk, path=Path(folder), mode=mode))
        oracle = CountingOracle(sizes, mode)
        for words in prompts:
            keys = keys_of(words)
            found = oracle.request(keys, num_hittable=len(keys) - 1, num_blocks=len(keys))
            assert rig.request(keys, num_hittable=len(keys) - 1) == found
            compare(rig, oracle)
        rig.cache.close()


def test_a_block_that_is_passed_down_and_read_again_goes_round(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, cpu=4, disk=8, path=tmp_path))
    for words in (A, B, C):
        rig.request(keys_of(words))
    rig.request([*keys_of(A)], num_hittable=4)
    stats = rig.cache.stats()
    assert stats[Tier.GPU].entered_blocks == {"computed": 12, "cpu": 0, "disk": 4, "remote": 0}
    assert stats[Tier.GPU].left_blocks == {"cpu": 12, "disk": 0, "remote": 0, "freed": 0, "dropped": 0}
    assert stats[Tier.CPU].entered_blocks == {"gpu": 12}
    assert stats[Tier.CPU].left_blocks == {"gpu": 0, "disk": 8, "remote": 0, "freed": 0, "dropped": 0}
    assert stats[Tier.DISK].entered_blocks == {"found": 0, "gpu": 0, "cpu": 8}
    assert stats[Tier.DISK].left_blocks == {"gpu": 4, "remote": 0, "freed": 0, "dropped": 0}


def test_a_copy_that_stays_where_it_was_leaves_nothing(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, cpu=8, mode=WriteMode.WRITE_THROUGH))
    rig.request(keys_of(A))
    assert rig.cache.stats()[Tier.CPU].entered_blocks == {"gpu": 4}
    assert sum(rig.cache.stats()[Tier.GPU].left_blocks.values()) == 0
    rig.request(keys_of(B))
    assert rig.cache.stats()[Tier.GPU].left_blocks["freed"] == 4


def test_what_the_disk_tier_kept_is_found_and_what_a_stop_writes_down_came_from_above(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=8, disk=8, path=tmp_path))
    rig.request(keys_of(A))
    rig.cache.flush(float("inf"))
    assert rig.cache.stats()[Tier.DISK].entered_blocks == {"found": 0, "gpu": 4, "cpu": 0}
    rig.cache.close()
    again = make_rig(config(gpu=8, disk=8, path=tmp_path))
    assert again.cache.stats()[Tier.DISK].entered_blocks == {"found": 4, "gpu": 0, "cpu": 0}
    again.cache.check()
    again.cache.close()


def test_clearing_a_tier_drops_what_no_other_has(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, cpu=4))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    rig.cache.clear(Tier.CPU)
    assert rig.cache.stats()[Tier.CPU].left_blocks["dropped"] == 4
    rig.request(keys_of(A))
    assert rig.cache.stats()[Tier.CPU].missed_blocks == 0, "what somebody cleared was not evicted"


def drop(rig: LevelRig, number: int) -> None:
    """A block that comes and is evicted to nowhere."""
    copy = rig.add(path_of(number))
    node = copy.node
    rig.level.remove(copy, Exit.EVICTED)
    rig.level.evicted_to(node, None)
    copy.give_row()
    node.tidy()


def path_of(number: int) -> bytes:
    return number.to_bytes(3)


def small(num_blocks: int) -> LevelRig:
    return LevelRig(Policy.LRU, num_blocks)


def test_a_tier_remembers_between_half_and_all_of_what_it_could_hold() -> None:
    rig = small(10)
    for number in range(100):
        drop(rig, number)
        assert len(rig.level.dropped) <= 10
        rig.check()
    known = {number for number in range(100) if key_of(path_of(number)) in rig.level.dropped}
    assert {*range(95, 100)} <= known <= {*range(90, 100)}
    parent, key = packed([key_of(path_of(99)[:2])]), packed([key_of(path_of(99))])
    requests.register(*rig.books.tables, key, parent[0], 2, np.zeros(1, np.int64), np.zeros(1, np.int32), 0)
    assert key_of(path_of(99)) not in rig.level.dropped
    assert rig.level.flows.num_missed == 1


def test_a_tier_of_nothing_remembers_nothing_and_no_tier_remembers_without_bound() -> None:
    nothing = small(1)
    drop(nothing, 0)
    assert not len(nothing.level.dropped)
    huge = small(10**9)
    for number in range(MAX_DROPPED_KEYS + 100):
        drop(huge, number)
    assert MAX_DROPPED_KEYS // 2 <= len(huge.level.dropped) <= MAX_DROPPED_KEYS


def test_a_tier_that_has_shrunk_remembers_no_more_than_it_may_hold_now() -> None:
    rig = small(8)
    for number in range(6):
        drop(rig, number)
    rig.level.resize(6)
    for number in range(6, 20):
        drop(rig, number)
        assert len(rig.level.dropped) <= 6
        rig.check()


@pytest.mark.parametrize("tier", TIERS)
def test_every_way_out_of_a_tier_is_a_way_into_another_or_out_of_all(tier: Tier) -> None:
    for way in ways_out_of(tier):
        assert way in ("freed", "dropped") or tier in origins_of(Tier(way))
