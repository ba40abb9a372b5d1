"""What every slower tier must do, whatever keeps its bytes. A module that runs it gives a fixture `only`.

`only(mode)` is a rig with a gpu tier of 6 blocks and that one slower tier of 8; `tier` says which one it is.
"""

from collections.abc import Callable
from itertools import product

import pytest

from tests.tiers.rig import Rig, block_bytes, content, keys_of
from tiers import Policy, Tier, WriteMode

A, B, C = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]
Only = Callable[[WriteMode], Rig]


class SlowerTierContract:
    tier: Tier

    @pytest.fixture(params=product([WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH], Policy), ids=str)
    def rig(self, only: Only, request: pytest.FixtureRequest) -> Rig:
        mode, policy = request.param
        rig = only(mode)
        rig.cache.configure(self.tier, policy=policy)
        return rig

    def test_a_block_comes_back_as_it_left(self, rig: Rig) -> None:
        rig.request(keys_of(A))
        rig.request(keys_of(B))
        assert self.tier in rig.request(keys_of(A))

    def test_a_hit_counts_for_this_tier_once_and_for_gpu_the_next_time(self, rig: Rig) -> None:
        rig.request(keys_of(A))
        rig.request(keys_of(B))
        first, second = rig.request(keys_of(A)), rig.request(keys_of(A))
        assert first == [Tier.GPU, Tier.GPU, self.tier]
        assert second == [Tier.GPU] * 3

    def test_it_never_holds_more_than_it_may(self, rig: Rig) -> None:
        for word in range(8):
            rig.request(keys_of([word] * 4))
            stats = rig.cache.stats()[self.tier]
            assert stats.used_bytes == stats.resident_blocks * block_bytes(self.tier) <= stats.capacity_bytes
        assert rig.resident()[self.tier] == 8

    def test_clearing_it_leaves_gpu_alone(self, rig: Rig) -> None:
        rig.request(keys_of(A))
        rig.request(keys_of(B))
        in_gpu, here = rig.resident()[Tier.GPU], rig.resident()[self.tier]
        assert rig.cache.clear(self.tier) == here > 0
        rig.settle()
        assert rig.resident()[self.tier] == 0
        assert rig.resident()[Tier.GPU] == in_gpu
        assert rig.cache.stats()[self.tier].evicted_blocks["clear"] == here

    def test_it_shrinks_to_nothing_and_grows_again(self, rig: Rig) -> None:
        rig.request(keys_of(A))
        rig.request(keys_of(B))
        here = rig.resident()[self.tier]
        rig.resize(self.tier, 0)
        rig.settle()
        assert rig.resident()[self.tier] == 0
        assert rig.cache.stats()[self.tier].evicted_blocks["resize"] == here
        rig.resize(self.tier, 8)
        rig.request(keys_of(C))
        rig.request(keys_of(A))
        assert rig.resident()[self.tier] > 0

    def test_what_it_loads_and_stores_is_counted_in_bytes_and_seconds(self, rig: Rig) -> None:
        rig.request(keys_of(A))
        rig.request(keys_of(B))
        loaded = rig.request(keys_of(A)).count(self.tier)
        stats = rig.cache.stats()[self.tier]
        assert stats.loaded_blocks == stats.load_seconds.count == loaded > 0
        assert stats.loaded_bytes == loaded * block_bytes(self.tier)
        assert stats.stored_blocks >= loaded
        assert stats.errors == {"load": 0, "store": 0}

    def test_a_write_through_tier_has_a_block_as_soon_as_it_is_full(self, only: Only) -> None:
        rig = only(WriteMode.WRITE_THROUGH)
        rig.request(keys_of(A))
        assert rig.resident()[self.tier] == 4

    def test_a_write_back_tier_has_a_block_only_once_it_has_left_gpu(self, only: Only) -> None:
        rig = only(WriteMode.WRITE_BACK)
        rig.request(keys_of(A))
        assert rig.resident()[self.tier] == 0
        rig.request(keys_of(B))
        assert rig.resident()[self.tier] == 2

    def test_a_selective_tier_has_a_block_only_after_its_second_hit(self, only: Only) -> None:
        rig = only(WriteMode.WRITE_SELECTIVE)
        stored: list[int] = []
        for _ in range(3):
            rig.request(keys_of(A))
            stored.append(rig.resident()[self.tier])
        assert stored == [0, 0, 3]  # the last block is computed each time
        rig.request(keys_of(B))
        assert rig.resident()[self.tier] == 3
        assert rig.request(keys_of(A)) == [Tier.GPU, Tier.GPU, self.tier]
        assert rig.resident()[self.tier] == 3

    def test_a_selective_tier_may_be_told_to_wait_for_more_hits_or_fewer(self, only: Only) -> None:
        rig = only(WriteMode.WRITE_SELECTIVE)
        rig.cache.configure(self.tier, store_after_hits=1)
        rig.request(keys_of(A))
        rig.request(keys_of(A))
        assert rig.resident()[self.tier] == 3
        rig.cache.configure(self.tier, store_after_hits=3)
        for _ in range(3):
            rig.request(keys_of(B))
        assert rig.resident()[self.tier] == 3

    def test_a_block_found_while_its_store_is_under_way_has_its_bytes(self, only: Only) -> None:
        rig = only(WriteMode.WRITE_BACK)
        rig.request(keys_of(A))
        other = rig.cache.acquire(keys_of(B), 4, {})  # evicts two blocks of A; nothing is polled
        assert other is not None
        assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 4
        rig.cache.release(other)
        again = rig.acquire(keys_of(A))
        assert again.hit_tiers.count(Tier.GPU) >= 2
        for key, slot in zip(keys_of(A), again.block_ids, strict=True):
            assert rig.pool.read(slot) == content(key)


class QuotaContract:
    """What a slower tier must do besides where one tenant may have only a part of it."""

    tier: Tier

    @pytest.fixture
    def rig(self, only: Only) -> Rig:
        rig = only(WriteMode.WRITE_THROUGH)
        rig.cache.configure(self.tier, tenant_quota=0.5)
        return rig

    def test_a_tenant_makes_room_for_itself_at_its_own_cost(self, rig: Rig) -> None:
        rig.request(keys_of(A), tenant="a")
        for word in (2, 3, 4):
            rig.request(keys_of([word] * 4), tenant="b")
            assert rig.resident()[self.tier] == 8
        rig.cache.clear(Tier.GPU)
        assert rig.cache.match(keys_of(A)) == [self.tier] * 4
        assert rig.cache.match(keys_of([4] * 4)) == [self.tier] * 4
        assert rig.cache.stats()[self.tier].evicted_blocks["quota"] == 8

    def test_a_block_is_not_kept_where_nothing_of_its_tenant_may_leave(self, rig: Rig) -> None:
        rig.request(keys_of([1] * 6), tenant="a")
        assert rig.resident()[self.tier] == 4
        assert rig.cache.stats()[self.tier].refused_blocks == 2
        rig.cache.clear(Tier.GPU)
        assert rig.cache.match(keys_of([1] * 6)) == [self.tier] * 4

    def test_a_lower_share_takes_effect_at_once_and_a_full_one_limits_nobody(self, rig: Rig) -> None:
        rig.request(keys_of(A), tenant="a")
        rig.cache.configure(self.tier, tenant_quota=0.25)
        rig.settle()
        assert rig.resident()[self.tier] == 2
        rig.cache.configure(self.tier, tenant_quota=1)
        rig.request(keys_of(B), tenant="a")
        assert rig.resident()[self.tier] == 8  # and what of A left gpu to make room

    def test_each_policy_takes_the_tenants_blocks_and_children_before_parents(self, rig: Rig) -> None:
        for policy in Policy:
            rig.cache.configure(self.tier, policy=policy)
            for word in range(5, 9):
                rig.request(keys_of([word] * 4), tenant="b")
                rig.request(keys_of([1, 1, word]), tenant="a")
            assert rig.resident()[self.tier] == 8
            assert rig.cache.num_orphans == 0
