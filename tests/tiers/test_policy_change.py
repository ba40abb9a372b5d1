"""A tier's policy changes while it is full: what lies there stays, and who leaves next is decided anew."""

from tests.tiers.rig import config, keys_of, make_rig
from tiers import Policy, Tier

A, B = [1, 1, 1, 1], [2, 2, 2, 2]


def test_a_change_of_policy_keeps_what_the_tier_holds() -> None:
    rig = make_rig(config(gpu=4, cpu=8))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    before = rig.resident()
    for policy in Policy:
        for tier in (Tier.GPU, Tier.CPU):
            rig.cache.configure(tier, policy=policy)
        rig.cache.check()
        assert rig.resident() == before
        assert rig.cache.match(keys_of(A)) == [Tier.CPU] * 4


def test_blocks_that_are_read_during_a_change_may_leave_afterwards() -> None:
    rig = make_rig(config(gpu=4))
    rig.request(keys_of(A))
    lease = rig.acquire(keys_of(A))
    for policy in Policy:
        rig.cache.configure(Tier.GPU, policy=policy)
        rig.cache.check()
    rig.cache.release(lease)
    assert rig.request(keys_of(B)) == []
    assert rig.request(keys_of(A)) == []
