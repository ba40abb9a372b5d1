"""Tiers that wait for the n-th hit: what counts as one, and where blocks go that were not hit often enough."""

from pathlib import Path

import pytest

from tests.tiers.rig import Rig, config, keys_of, make_rig
from tiers import BlockKey, Tier, WriteMode

A, B, ONCE = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]
SELECTIVE = WriteMode.WRITE_SELECTIVE


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """cpu waits for two hits; disk takes what leaves the others."""
    rig = make_rig(config(gpu=5, cpu=8, disk=8, path=tmp_path))
    rig.cache.configure(Tier.CPU, write_mode=SELECTIVE)
    return rig


def test_what_was_not_hit_often_enough_passes_the_tier_by(rig: Rig) -> None:
    rig.request(keys_of(ONCE))
    rig.request(keys_of(A))
    assert rig.resident() == {Tier.GPU: 5, Tier.CPU: 0, Tier.DISK: 3}
    for _ in range(2):
        rig.request(keys_of(A))
    assert rig.resident()[Tier.CPU] == 3


def test_without_a_slower_tier_that_takes_it_a_block_is_gone() -> None:
    rig = make_rig(config(gpu=5, cpu=8, mode=SELECTIVE))
    rig.request(keys_of(ONCE))
    rig.request(keys_of(A))
    assert rig.cache.match(keys_of(ONCE)) == [Tier.GPU]
    assert rig.resident() == {Tier.GPU: 5, Tier.CPU: 0, Tier.DISK: 0}


def test_a_hit_in_a_slower_tier_counts_too_and_stores_once_the_block_is_loaded(rig: Rig) -> None:
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    assert rig.request(keys_of(A)) == [Tier.GPU, Tier.DISK, Tier.DISK]
    rig.request(keys_of(B))
    assert rig.resident()[Tier.CPU] == 0
    hits = rig.request(keys_of(A))
    assert Tier.DISK in hits
    assert rig.resident()[Tier.CPU] == 3


def test_a_request_that_is_admitted_again_has_not_hit_again() -> None:
    rig = make_rig(config(gpu=8, cpu=8, mode=SELECTIVE))
    rig.request(keys_of(A))
    origins: dict[BlockKey, Tier] = {}
    for _ in range(3):  # sent back twice, as after a preemption
        lease = rig.cache.acquire(keys_of(A), 4, origins)
        assert lease is not None
        rig.cache.release(lease)
        rig.settle()
    assert rig.resident()[Tier.CPU] == 0


def test_what_was_in_no_tier_for_a_while_starts_anew() -> None:
    rig = make_rig(config(gpu=4, cpu=8, mode=SELECTIVE))
    rig.request(keys_of(A))
    rig.request(keys_of(A))
    rig.request(keys_of(B))  # A is gone
    rig.request(keys_of(A))
    rig.request(keys_of(A))
    assert rig.resident()[Tier.CPU] == 0
    rig.request(keys_of(A))
    assert rig.resident()[Tier.CPU] == 3


def test_a_clean_stop_writes_down_only_what_was_hit_often_enough(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=10, disk=8, path=tmp_path, mode=SELECTIVE))
    for words in (A, A, ONCE):
        rig.request(keys_of(words))
    rig.cache.configure(Tier.DISK, store_after_hits=1)
    rig.cache.flush(deadline=float("inf"))
    rig.cache.close()
    again = make_rig(config(gpu=10, disk=8, path=tmp_path))
    assert again.cache.match(keys_of(A)) == [Tier.DISK] * 3
    assert again.cache.match(keys_of(ONCE)) == []
    again.cache.close()
