"""What every policy must do, whatever it prefers: prompts that share prefixes come, are read and leave."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.tiers.policies.rig import LevelRig, path_of, tenant_of
from tiers import Policy
from tiers.eviction import Exit
from tiers.node import Copy

PATHS = st.lists(st.integers(0, 2), min_size=1, max_size=5).map(bytes)
TENANTS = st.integers(0, 2).map(lambda number: tenant_of(bytes([number])))
CAPACITY = 12


class PolicyMachine(RuleBasedStateMachine):
    """Requests as the cache makes them: a prefix is held, what is missing gets room and is added at the release."""

    policy = Policy.LRU

    def __init__(self) -> None:
        super().__init__()
        self.rig = LevelRig(self.policy, CAPACITY)
        self.reads: list[bytes] = []

    @property
    def held(self) -> set[bytes]:
        return {path[: depth + 1] for path in self.reads for depth in range(len(path))}

    @property
    def may_leave(self) -> set[bytes]:
        free = self.rig.resident - self.held
        return {path for path in free if not self.rig.followers(self.rig.node(path))}

    @rule(path=PATHS)
    def read(self, path: bytes) -> None:
        self.reads.append(path)
        prefixes = [path[: depth + 1] for depth in range(len(path))]
        for prefix in prefixes:
            if (copy := self.rig.find(prefix)) is not None:
                self.rig.level.eviction.hold(copy)
        for prefix in prefixes:
            if self.rig.find(prefix) is None and self.has_room(prefix):
                self.rig.book(prefix)

    @precondition(lambda self: self.reads)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(self.reads))
        self.reads.remove(path)
        for depth in reversed(range(len(path))):
            copy = self.rig.find(path[: depth + 1])
            if copy is not None and path[: depth + 1] not in self.held:
                self.rig.level.eviction.touch(copy)

    def has_room(self, incoming: bytes) -> bool:
        while self.rig.level.num_blocks >= self.rig.level.capacity_blocks:
            if not self.may_leave:
                return False
            assert self.rig.evict(incoming) not in self.held
        return True

    @rule(path=PATHS)
    def comes_down(self, path: bytes) -> None:
        if path in self.held or not self.has_room(path):
            return
        copy = self.rig.find(path) or self.rig.book(path)
        self.rig.level.eviction.enter(copy)

    @precondition(lambda self: self.may_leave)
    @rule(data=st.data(), leave=st.sampled_from([Exit.PROMOTED, Exit.DROPPED]))
    def leaves(self, data: st.DataObject, leave: Exit) -> None:
        """Read from here into gpu, or lost: a block of any place, also one in the middle of a prefix."""
        self.rig.remove(self.copy(data.draw(st.sampled_from(sorted(self.rig.resident - self.held)))), leave)

    @rule(capacity=st.integers(0, CAPACITY))
    def resize(self, capacity: int) -> None:
        self.rig.level.resize(capacity)
        while self.rig.level.is_over and self.may_leave:
            assert self.rig.evict() not in self.held

    @rule(share=st.sampled_from([0.1, 0.4, 0.8, 1.0]))
    def limit_tenants(self, share: float) -> None:
        self.rig.level.configure({"tenant_quota": share})
        while surplus := self.rig.level.eviction.surplus():
            assert self.rig.leave(surplus) not in self.held

    @precondition(lambda self: self.rig.level.tenant_quota < 1)
    @rule(tenant=TENANTS)
    def makes_room_for_itself(self, tenant: str) -> None:
        if any(tenant_of(path) == tenant for path in self.may_leave):
            assert tenant_of(self.rig.evict_own(tenant)) == tenant

    @rule(policy=st.sampled_from(Policy))
    def change_there_and_back(self, policy: Policy) -> None:
        before = self.rig.level.policy
        self.rig.level.set_policy(policy)
        self.rig.level.set_policy(before)

    @invariant()
    def books_agree(self) -> None:
        eviction = self.rig.level.eviction
        self.rig.check()
        free = self.rig.resident - self.held
        assert len(eviction) == len(free)
        assert {path_of(copy.node) for copy in eviction.oldest_first()} == free
        assert all((self.copy(path) in eviction) == (path in free) for path in self.rig.resident)

    @invariant()
    def the_victim_is_a_block_that_may_leave(self) -> None:
        victim = self.rig.level.eviction.victim()
        assert (victim is not None) == bool(self.may_leave)
        assert victim is None or path_of(victim.node) in self.may_leave

    @precondition(lambda self: self.rig.level.tenant_quota < 1)
    @invariant()
    def a_tenants_victim_is_one_of_its_blocks_that_may_leave(self) -> None:
        for tenant in {tenant_of(path) for path in self.rig.resident}:
            victim = self.rig.level.eviction.victim_of(self.rig.books.tenants.number(tenant))
            own = {path for path in self.may_leave if tenant_of(path) == tenant}
            assert (victim is not None) == bool(own)
            assert victim is None or path_of(victim.node) in own

    @invariant()
    def children_come_first(self) -> None:
        order = [path_of(copy.node) for copy in self.rig.level.eviction.oldest_first()]
        for at, path in enumerate(order):
            assert path[:-1] not in order[:at]

    def copy(self, path: bytes) -> Copy:
        copy = self.rig.find(path)
        assert copy is not None
        return copy

    def teardown(self) -> None:
        held, self.reads = self.held, []
        for path in sorted(held, key=len, reverse=True):
            if (copy := self.rig.find(path)) is not None:
                self.rig.level.eviction.touch(copy)
        while self.rig.resident:
            self.rig.evict()
        self.rig.check()


class S3FifoMachine(PolicyMachine):
    policy = Policy.S3FIFO


class ArcMachine(PolicyMachine):
    policy = Policy.ARC


@pytest.mark.parametrize("machine", [PolicyMachine, S3FifoMachine, ArcMachine])
def test_a_policy_keeps_the_contract(machine: type[PolicyMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None))


def test_every_policy_is_held_to_the_contract() -> None:
    assert {machine.policy for machine in (PolicyMachine, S3FifoMachine, ArcMachine)} == set(Policy)


@pytest.mark.parametrize("policy", Policy)
def test_what_a_policy_remembers_is_bounded(policy: Policy) -> None:
    """By keys alone: at most two for each block that the tier may hold, and none once it may hold nothing."""
    rig = LevelRig(policy, 10)
    for number in range(2_000):
        rig.access(number.to_bytes(2, "big"))
        rig.check()
    rig.level.resize(0)
    while rig.resident:
        rig.evict()
    rig.check()


@pytest.mark.parametrize("policy", [Policy.S3FIFO, Policy.ARC])
def test_blocks_that_are_used_again_outlive_a_scan(policy: Policy) -> None:
    rig = LevelRig(policy, 20)
    hot = [bytes([number]) for number in range(10)]
    for path in hot * 3:
        rig.access(path)
    for number in range(100, 250):
        rig.access(bytes([number]))
    assert rig.resident.issuperset(hot)


@pytest.mark.parametrize("policy", Policy)
def test_a_parent_waits_for_the_blocks_that_follow_it(policy: Policy) -> None:
    rig = LevelRig(policy, 4)
    for path in (b"a", b"ab", b"abc", b"x"):
        rig.add(path)
    if policy is Policy.LRU:  # which knows a prefix by the order in which it is touched
        for path in (b"abc", b"ab", b"a"):
            rig.access(path)
    order = [rig.evict() for _ in range(4)]
    assert sorted(order) == [b"a", b"ab", b"abc", b"x"]
    assert order.index(b"abc") < order.index(b"ab") < order.index(b"a")
