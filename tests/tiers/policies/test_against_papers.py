"""Where no block follows another, every policy evicts what its paper's listing evicts, block by block."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers.policies.references import NaiveArc, NaiveLru, NaiveS3Fifo, Reference
from tests.tiers.policies.rig import LevelRig
from tests.tiers.rig import config, keys_of, make_rig
from tiers import Policy

REFERENCES: dict[Policy, Callable[[int], Reference]] = {
    Policy.LRU: NaiveLru,
    Policy.S3FIFO: NaiveS3Fifo,
    Policy.ARC: NaiveArc,
}
CAPACITIES = st.integers(1, 24)
# Few keys, so that ghosts come back; a run of new ones now and then, so that they are scanned out.
KEYS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 40)), min_size=1, max_size=300)


def test_every_policy_has_a_reference() -> None:
    assert set(REFERENCES) == set(Policy)


@pytest.mark.parametrize("policy", Policy)
@given(capacity=CAPACITIES, keys=KEYS)
def test_victims_are_those_of_the_paper(policy: Policy, capacity: int, keys: list[int]) -> None:
    rig, paper = LevelRig(policy, capacity), REFERENCES[policy](capacity)
    for number in keys:
        assert rig.access(bytes([number])) == paper.access(bytes([number]))
        rig.check()


@pytest.mark.parametrize("policy", Policy)
@given(capacity=st.integers(1, 12), numbers=st.lists(st.integers(0, 30), min_size=1, max_size=80))
def test_so_are_those_of_a_whole_cache(policy: Policy, capacity: int, numbers: list[int]) -> None:
    rig, paper = make_rig(config(gpu=capacity, policy=policy)), REFERENCES[policy](capacity)
    resident: set[bytes] = set()
    for number in numbers:
        (key,) = keys_of([number])
        rig.request([key], num_hittable=1)
        gone = paper.access(key)
        resident = (resident | {key}) - set(gone)
        assert {k for n in range(31) if rig.cache.match([k := keys_of([n])[0]])} == resident
    rig.cache.check()
