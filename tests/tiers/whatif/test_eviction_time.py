"""Smaller LRU caches estimated from the waits of one: against real ones, on random traffic."""

import random
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers.whatif.eviction_time import Waits, curve_below

# vLLM's own bounds, in seconds.
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, inf)
CAPACITY = 1_000
NUM_ACCESSES = 60_000
Access = tuple[float, int]  # seconds, block


def popular(skew: float) -> list[Access]:
    """Independent accesses, few blocks asked for often and many seldom."""
    chance = random.Random(5)
    weights = [1 / (rank + 1) ** skew for rank in range(8_000)]
    return _timed(chance.choices(range(8_000), weights, k=NUM_ACCESSES), chance)


def talks() -> list[Access]:
    """Blocks of conversations: eight turns each, a thousand going on at a time, and then never again."""
    chance, num_begun = random.Random(5), 0
    going: list[list[int]] = []
    blocks: list[int] = []
    while len(blocks) < NUM_ACCESSES:
        if not going or chance.random() < 0.15:
            going.append([num_begun, 8])
            num_begun += 1
        talk = going[chance.randrange(len(going))]
        blocks.append(talk[0])
        talk[1] -= 1
        going = [each for each in going[-1_000:] if each[1]]
    return _timed(blocks, chance)


def _timed(blocks: list[int], chance: random.Random) -> list[Access]:
    now = 0.0
    return [(now := now + chance.expovariate(200), block) for block in blocks]


def lru(accesses: list[Access], capacity: int, *, all_gaps: bool) -> Waits:
    """What the cache did. As vLLM tells it, or with each gap: vLLM tells, when a block is evicted, the gaps between its
    last four hits, so not the one before its first.
    """
    last: OrderedDict[int, float] = OrderedDict()
    uses: dict[int, deque[float]] = {}
    gaps: Counter[float] = Counter(dict.fromkeys(BOUNDS, 0))
    num_hits = 0
    idle: list[float] = []
    for now, block in accesses:
        if block in last:
            num_hits += 1
            gaps[BOUNDS[bisect_left(BOUNDS, now - last.pop(block))]] += all_gaps
            uses[block].append(now)
        else:
            if len(last) == capacity:
                oldest, used_at = last.popitem(last=False)
                idle.append(now - used_at)
                told = [] if all_gaps else list(uses[oldest])
                gaps.update(BOUNDS[bisect_left(BOUNDS, end - start)] for start, end in pairwise(told))
            uses[block] = deque(maxlen=4)
        last[block] = now
    return Waits(gaps, sum(idle) / len(idle), capacity, len(accesses), num_hits)


@pytest.mark.parametrize("skew", [0.6, 0.8, 1.0])
def test_with_every_gap_smaller_caches_are_right_to_a_point(skew: float) -> None:
    accesses = popular(skew)
    curve = curve_below(lru(accesses, CAPACITY, all_gaps=True))
    for capacity in (100, 250, 500, 750, 1_000):
        truth = lru(accesses, capacity, all_gaps=True).hit_tokens
        assert curve.hits(capacity) / NUM_ACCESSES == pytest.approx(truth / NUM_ACCESSES, abs=0.01)


@pytest.mark.parametrize("made", [lambda: popular(0.6), lambda: popular(1.0), talks], ids=["even", "skewed", "talks"])
def test_with_the_gaps_that_vllm_tells_a_smaller_cache_is_not_promised_too_much(
    made: Callable[[], list[Access]],
) -> None:
    accesses = made()
    curve = curve_below(lru(accesses, CAPACITY, all_gaps=False))
    for capacity in (100, 250, 500, 750):
        truth = lru(accesses, capacity, all_gaps=True).hit_tokens
        assert curve.hits(capacity) / NUM_ACCESSES <= truth / NUM_ACCESSES + 0.02
    assert curve.hits(CAPACITY) == lru(accesses, CAPACITY, all_gaps=True).hit_tokens


def test_conversations_are_right_to_three_points_even_so() -> None:
    accesses = talks()
    curve = curve_below(lru(accesses, CAPACITY, all_gaps=False))
    for capacity in (250, 500, 750):
        truth = lru(accesses, capacity, all_gaps=True).hit_tokens
        assert curve.hits(capacity) / NUM_ACCESSES == pytest.approx(truth / NUM_ACCESSES, abs=0.03)


@given(
    gaps=st.lists(st.integers(0, 1_000), min_size=len(BOUNDS), max_size=len(BOUNDS)).filter(sum),
    idle=st.floats(0.0005, 5_000),
    capacity=st.integers(1, 10**7),
    hit=st.integers(0, 10**9),
    computed=st.integers(0, 10**9),
)
def test_any_waits_give_a_curve_that_ends_in_what_was_measured(
    gaps: list[int], idle: float, capacity: int, hit: int, computed: int
) -> None:
    curve = curve_below(Waits(dict(zip(BOUNDS, gaps, strict=True)), idle, capacity, hit + computed, hit))
    assert curve.bounds[-1] == capacity
    assert curve.hits(capacity) == hit
    assert curve.total == hit + computed


@pytest.mark.parametrize("empty", [{"gaps": {1.0: 0}}, {"idle_seconds": 0.0}, {"capacity": 0}])
def test_nothing_measured_is_no_curve(empty: dict[str, object]) -> None:
    told: dict[str, object] = {
        "gaps": {1.0: 5},
        "idle_seconds": 2.0,
        "capacity": 9,
        "prompt_tokens": 9,
        "hit_tokens": 1,
    }
    with pytest.raises(ValueError, match="No gaps"):
        curve_below(Waits(**(told | empty)))  # type: ignore[arg-type]
