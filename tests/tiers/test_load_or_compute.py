"""A tier that is read only where that is cheaper: what is left out, what never is, and that it is tried again."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers.rig import BLOCK_SIZE, Rig, config, keys_of, make_rig
from tiers import LoadChoice, Tier, TierConfig
from tiers.books.books import Books
from tiers.level import Level
from tiers.load_cost import DECLINES_TO_PROBE, PROBE_BLOCKS, LoadCost
from tiers.node import Node, ensure
from tiers.worth import Worth

A, B = [1] * 8, [2] * 8
CHEAPER = LoadChoice.WHEN_CHEAPER


def computing_is_free(position: int, num_tokens: int) -> float:
    return 0.0


def computing_takes_forever(position: int, num_tokens: int) -> float:
    return 1e9


@pytest.fixture
def rig() -> Rig:
    """A lies in cpu but for its first two blocks, and a load from there has been measured."""
    rig = make_rig(config(gpu=10, cpu=20))
    rig.cache.configure(Tier.CPU, load=CHEAPER)
    for words in (A, B, A, B):
        rig.request(keys_of(words))
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 2 + [Tier.CPU] * 6
    return rig


def read(rig: Rig, words: Sequence[int]) -> tuple[list[Tier], list[Tier]]:
    """Tiers of the blocks that a request reads, and of those that it leaves out; it computes nothing."""
    lease = rig.acquire(keys_of(words))
    rig.cache.release(lease)
    rig.settle()
    return lease.hit_tiers, lease.skipped_tiers


def test_blocks_that_are_cheaper_to_compute_are_left_out_at_the_end_of_the_match(rig: Rig) -> None:
    rig.cache.prefill_seconds = computing_is_free
    assert read(rig, A) == ([Tier.GPU] * 2, [Tier.CPU] * 6)


def test_blocks_that_are_cheaper_to_load_are_read(rig: Rig) -> None:
    rig.cache.prefill_seconds = computing_takes_forever
    assert read(rig, A) == ([Tier.GPU] * 2 + [Tier.CPU] * 6, [])


def test_an_engine_that_measures_nothing_reads_everything(rig: Rig) -> None:
    assert read(rig, A)[1] == []


def test_a_tier_that_is_always_read_is_read_whatever_it_costs(rig: Rig) -> None:
    rig.cache.prefill_seconds = computing_is_free
    rig.cache.configure(Tier.CPU, load=LoadChoice.ALWAYS)
    assert read(rig, A)[1] == []


def test_a_tier_whose_loads_were_never_measured_is_read() -> None:
    rig = make_rig(config(gpu=10, cpu=20))
    rig.cache.configure(Tier.CPU, load=CHEAPER)
    rig.cache.prefill_seconds = computing_is_free
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    assert read(rig, A)[1] == []


def test_what_was_left_out_and_computed_lies_in_gpu_afterwards_and_nowhere_twice(rig: Rig) -> None:
    rig.cache.prefill_seconds = computing_is_free
    rig.request(keys_of(A), num_hittable=8)
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * 8
    assert sum(rig.resident().values()) == 16


def test_now_and_then_a_few_blocks_are_loaded_although_they_would_be_left_out(rig: Rig) -> None:
    rig.cache.prefill_seconds = computing_is_free
    left_out = [len(read(rig, A)[1]) for _ in range(DECLINES_TO_PROBE + 1)]
    assert left_out == [6] * DECLINES_TO_PROBE + [6 - PROBE_BLOCKS]
    assert rig.cache.match(keys_of(A)) == [Tier.GPU] * (2 + PROBE_BLOCKS) + [Tier.CPU] * (6 - PROBE_BLOCKS)
    assert len(read(rig, A)[1]) == 6 - PROBE_BLOCKS, "the load has been measured, so the next probe is far"


def test_asking_again_for_room_is_no_decision(rig: Rig) -> None:
    """A request that has to wait asks at every step; its tier is not probed for that."""
    rig.cache.prefill_seconds = computing_is_free
    others = rig.cache.acquire([], 9, {})
    assert others is not None
    for _ in range(3 * DECLINES_TO_PROBE):
        assert rig.cache.acquire(keys_of(A), 8, {}) is None
    rig.cache.release(others)
    rig.settle()
    assert rig.cache.match(keys_of(A)) == [Tier.CPU] * 8
    assert len(read(rig, A)[1]) == 8


def test_a_running_estimate_follows_loads_that_become_slower_and_forgets_one_that_was() -> None:
    assert LoadCost().seconds is None
    assert after([1.0] * 100) == 1.0
    assert after([1.0] * 100 + [10.0]) == pytest.approx(1.56, abs=0.01)
    assert after([1.0] * 100 + [10.0] + [1.0] * 50) == pytest.approx(1.0, abs=0.1)
    assert after([1.0] * 100 + [3.0] * 50) == pytest.approx(3.0, abs=0.1)


def after(loads: Sequence[float]) -> float | None:
    cost = LoadCost()
    for seconds in loads:
        cost.observe(seconds, 1)
    return cost.seconds


# -- the cut, against all cuts ----------------------------------------------------------------------------------------
Place = tuple[int, int]  # rank of the level, seconds of computing the block
RANKS = {0: Tier.GPU, 1: Tier.CPU, 2: Tier.DISK, 3: Tier.REMOTE}


def chain(books: Books, levels: Sequence[Level], places: Sequence[Place]) -> list[Node]:
    nodes: list[Node] = []
    for depth, (rank, _) in enumerate(places):
        key, parent = bytes([depth + 1] * 16), bytes([depth] * 16)
        nodes.append(ensure(books, key, parent, depth))
        levels[rank].add(nodes[-1], levels[rank].tier, Tier.GPU if rank else None)
    return nodes


@given(
    places=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=8),
    seconds=st.tuples(*[st.one_of(st.none(), st.integers(0, 4))] * 3),
    loads=st.tuples(*[st.sampled_from(LoadChoice)] * 3),
)
def test_the_cut_is_the_cheapest_of_all_that_leave_out_nothing_that_must_be_read(
    places: list[Place], seconds: tuple[int | None, ...], loads: tuple[LoadChoice, ...]
) -> None:
    books = Books(len(RANKS))
    levels = [Level(books, rank, TierConfig(tier, 100, path=Path(), url="redis://"), 1) for rank, tier in RANKS.items()]
    for level, cost, load in zip(levels[1:], seconds, loads, strict=True):
        level.load = load
        if cost is not None:
            level.cost.observe(cost, 1)
    computes = [float(compute) for _, compute in places]
    worth = Worth(levels, BLOCK_SIZE, lambda position, num_tokens: computes[position // BLOCK_SIZE])
    cut = worth.num_worth(chain(books, levels, places))
    must_read = [rank == 0 or level_must_be_read(levels[rank]) for rank, _ in places]
    first = max((at + 1 for at, must in enumerate(must_read) if must), default=0)
    costs = [levels[rank].cost.seconds or 0.0 for rank, _ in places]
    totals = {other: sum(costs[first:other]) + sum(computes[other:]) for other in range(first, len(places) + 1)}
    assert totals[cut] == min(totals.values())


def level_must_be_read(level: Level) -> bool:
    return level.load is LoadChoice.ALWAYS or level.cost.seconds is None
