"""The sampled stack against the exact one: the same where nothing is left out, exact for the newest, close below."""

import random
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers.whatif.test_stack_positions import chain, prompts
from tiers.whatif import Accesses, HitCurve, read_trace, stack_positions
from tiers.whatif.accesses import uniform
from tiers.whatif.binned import BinnedCurve
from tiers.whatif.shards import ALL, EXACT, MAX_BLOCKS, SAMPLED, UNKNOWN, SampledStack
from tiers.whatif.shards_buckets import LARGEST_TOKENS, CapacityBuckets, ReuseCounts, capacity_bounds, coarse_bounds
from tiers.whatif.shards_curve import ReuseCurve
from tiers.whatif.shards_trace import hashed, sampled_hits, trace_stack
from tiers.whatif.stack import NEVER

BLOCK = 16
TRACE = Path(__file__).parents[4] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"


def keys_of(names: list[str]) -> list[bytes]:
    return [blake2b(name.encode(), digest_size=16).digest() for name in names]


def run(stack: SampledStack, requests: list[list[str]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    accesses = uniform(requests)
    for names in np.split(hashed(accesses.block_ids), accesses.starts[1:-1]):
        found = stack.look_up(names)
        stack.touch(names)
        yield found.positions, found.kinds


@given(prompts)
def test_where_all_is_sampled_positions_are_exact(requests: list[list[str]]) -> None:
    stack = SampledStack(512)
    positions = np.concatenate([positions for positions, _ in run(stack, requests)])
    assert positions.tolist() == stack_positions(uniform(requests)).tolist()
    assert stack.rate == 1
    stack.check()


@given(prompts, st.integers(8, 40), st.sampled_from([1.0, 0.5, 0.1]))
def test_the_newest_are_exact_whatever_was_left_out(requests: list[list[str]], max_blocks: int, rate: float) -> None:
    stack = SampledStack(max_blocks, threshold=round(ALL * rate))
    found = list(run(stack, requests))
    positions, kinds = (np.concatenate(parts) for parts in zip(*found, strict=True))
    exact = stack_positions(uniform(requests))
    assert positions[kinds == EXACT].tolist() == exact[kinds == EXACT].tolist()
    newest = exact < max_blocks // 2 - max(map(len, requests))
    assert (kinds[newest] == EXACT).all(), "a block that was used just now is not there"
    assert stack.num_blocks <= max_blocks
    stack.check()


@given(prompts)
def test_live_counts_are_the_exact_curve_to_the_token_where_all_is_sampled(requests: list[list[str]]) -> None:
    curve = ReuseCurve(BLOCK, max_blocks=512)
    for names in requests:
        keys = keys_of(names)
        curve.ask(keys, len(keys) * BLOCK + 5)
        curve.touch(keys)
        curve.check()
    exact = HitCurve()
    exact.add(stack_positions(uniform(requests)))
    counts = curve.counts()
    assert counts.sample_rate == 1
    binned = BinnedCurve(counts.bounds, counts.tokens[:-1], counts.tokens[-1])
    assert [binned.hits(bound) for bound in counts.bounds] == [
        hits * BLOCK for hits in exact.at([bound // BLOCK for bound in counts.bounds])
    ]
    assert binned.total == exact.total * BLOCK + 5 * len(requests)


@given(st.lists(st.tuples(st.sampled_from("ab"), prompts), max_size=6))
def test_each_part_is_counted_in_the_cache_that_all_share(turns: list[tuple[str, list[list[str]]]]) -> None:
    block = 256  # four of them are the first of the coarser capacities
    curve, whose = ReuseCurve(block, max_blocks=1024), [(part, names) for part, many in turns for names in many]
    for part, names in whose:
        curve.ask(keys_of(names), len(names) * block + 7, part)
        curve.touch(keys_of(names))
    curve.check()
    accesses = uniform([names for _, names in whose] or [["a"]])
    of_block = np.repeat([part for part, _ in whose] or ["nobody"], np.diff(accesses.starts))
    told = curve.parts("abc")
    assert sum(told["c"].tokens) == 0, "who never asked"
    for part in "ab":
        exact, counts = HitCurve(), told[part]
        exact.add(stack_positions(accesses)[of_block == part])
        up_to = np.cumsum(counts.tokens)[:-1].tolist()
        assert up_to == [hits * block for hits in exact.at([bound // block for bound in counts.bounds])]
        assert sum(counts.tokens) == exact.total * block + 7 * sum(name == part for name, _ in whose)


@settings(max_examples=30)
@given(prompts, st.integers(8, 24))
def test_parts_are_the_whole_also_where_blocks_are_sampled(requests: list[list[str]], max_blocks: int) -> None:
    curve = ReuseCurve(BLOCK, max_blocks)
    for number, names in enumerate(requests):
        curve.ask(keys_of(names), len(names) * BLOCK + number, "abc"[number % 3])
        curve.touch(keys_of(names))
        curve.check()


def test_the_coarser_bounds_are_octaves_of_the_same_list() -> None:
    assert coarse_bounds(16)[:3] == (1024, 2048, 4096)
    assert coarse_bounds(4096)[0] == 4096
    assert coarse_bounds(16)[-1] == LARGEST_TOKENS
    assert set(coarse_bounds(16)) < set(capacity_bounds(16))


@settings(max_examples=50)
@given(prompts, st.integers(8, 24), st.integers(1, 5))
def test_counts_add_up_to_the_prompts_and_never_fall(requests: list[list[str]], max_blocks: int, every: int) -> None:
    curve, asked = ReuseCurve(BLOCK, max_blocks), 0
    before = curve.counts().tokens
    for number, names in enumerate(requests):
        curve.ask(keys_of(names), len(names) * BLOCK + number)
        curve.touch(keys_of(names))
        asked += len(names) * BLOCK + number
        if number % every == 0:
            counts = curve.counts().tokens
            assert sum(counts) == asked
            assert all(new >= old for old, new in zip(before, counts, strict=True))
            before = counts
        curve.check()


def test_only_known_blocks_become_the_newest_when_a_request_asks_for_them() -> None:
    curve = ReuseCurve(BLOCK, 64)
    for _ in range(2):
        curve.ask(keys_of(["a", "b"]), 2 * BLOCK)
    assert curve.counts().tokens[-1] == 4 * BLOCK, "two requests at once both compute it"
    curve.touch(keys_of(["a", "b"]))
    curve.ask(keys_of(["a", "b"]), 2 * BLOCK)
    assert curve.counts().tokens[:-1].count(BLOCK) == 2


def test_bounds_are_one_list_for_all_engines() -> None:
    lists = [set(capacity_bounds(size)) for size in (8, 16, 32, 64, 128)]
    assert all(larger <= smaller for smaller, larger in pairwise(lists))
    for size, bounds in zip((8, 16, 32, 64, 128), lists, strict=True):
        assert (min(bounds), max(bounds)) == (size, LARGEST_TOKENS)
        assert len(bounds) <= 101


def test_memory_is_bounded() -> None:
    assert SampledStack().num_bytes <= 8 << 20
    assert MAX_BLOCKS * BLOCK == 2 << 20


def test_what_lies_deeper_than_anybody_asks_for_is_forgotten_and_the_rate_stays() -> None:
    """Blocks that never come back, for ever."""
    stack = SampledStack(64, deepest=200)
    rates = []
    for first in range(0, 20_000, 10):
        keys = hashed(np.arange(first, first + 10))
        assert (stack.look_up(keys).kinds != EXACT).all()
        stack.touch(keys)
        rates.append(stack.rate)
    stack.check()
    assert rates[-1] == rates[1000] >= 1 / 64
    stack.touch(hashed(np.arange(1)))
    assert stack.look_up(hashed(np.arange(1))).positions.tolist() == [0]


def test_a_position_that_is_too_deep_is_none() -> None:
    stack = SampledStack(64, deepest=3)
    stack.touch(hashed(np.arange(5)))
    positions = [stack.look_up(hashed(np.array([block]))).positions[0] for block in range(5)]
    assert positions == [0, 1, 2, NEVER, NEVER]


def test_a_block_after_one_that_is_missing_is_no_hit() -> None:
    stack = SampledStack(64)
    stack.touch(hashed(np.array([1, 2])))
    found = stack.look_up(hashed(np.array([0, 1, 2])))
    assert found.positions.tolist() == [NEVER] * 3


def test_blocks_that_share_a_half_of_their_key_never_fill_the_tables() -> None:
    stack = SampledStack(16)
    stack.touch(np.arange(1000))
    stack.check()
    assert stack.look_up(np.array([0])).positions[0] == 0


@given(prompts, st.integers(8, 40), st.integers(0, 30))
def test_a_restored_stack_goes_on_as_the_one_that_was_saved(
    requests: list[list[str]], max_blocks: int, cut: int
) -> None:
    stack, other = SampledStack(max_blocks), SampledStack(max_blocks)
    list(run(stack, requests[:cut]))
    other.restore(stack.sample())
    other.check()
    assert other.rate == stack.rate
    ids = hashed(uniform(requests).block_ids)
    for key in np.unique(ids):
        one, two = stack.look_up(np.array([key])), other.look_up(np.array([key]))
        assert (one.positions[0], one.kinds[0]) == (two.positions[0], two.kinds[0])


def test_the_newest_of_a_larger_sample_come_back() -> None:
    large, small = SampledStack(1000), SampledStack(100)
    large.touch(hashed(np.arange(5000)))
    small.restore(large.sample())
    small.check()
    found = small.look_up(hashed(np.array([99])))
    assert (found.positions[0], found.kinds[0]) == (99, EXACT)


@pytest.mark.parametrize(("size", "threshold", "deepest"), [(7, ALL, 1), (8, 0, 1), (8, ALL + 1, 1), (8, ALL, 0)])
def test_a_sample_that_is_none_is_refused(size: int, threshold: int, deepest: int) -> None:
    with pytest.raises(ValueError, match="expected at least 8"):
        SampledStack(size, threshold=threshold, deepest=deepest)


def synthetic(num_requests: int = 6000) -> Accesses:
    """Conversations that grow turn by turn over a few system prompts."""
    rng = random.Random(1)
    turns = [0] * 2000
    requests = []
    for _ in range(num_requests):
        chat = min(int(rng.expovariate(1 / 300)), 1999)
        turns[chat] += rng.randrange(1, 6)
        requests.append([*chain(chat % 5, 12, 0, 0), *[f"c{chat}.{n}" for n in range(turns[chat])]])
    return uniform(requests)


@pytest.fixture(scope="module", params=["mooncake", "synthetic"])
def trace(request: pytest.FixtureRequest) -> Accesses:
    if request.param == "synthetic":
        return synthetic()
    if not TRACE.exists():
        pytest.skip(f"{TRACE} is not there")
    return read_trace(TRACE)


def sizes_of(accesses: Accesses) -> list[int | None]:
    return [int(size) for size in np.geomspace(100, accesses.num_unique, 30)]


def exact_rates(accesses: Accesses, weights: np.ndarray | None) -> np.ndarray:
    exact = HitCurve()
    exact.add(stack_positions(accesses), weights)
    return np.array(exact.at(sizes_of(accesses))) / exact.total


def test_a_hundredth_of_what_is_deep_is_within_a_point_at_thirty_sizes(trace: Accesses) -> None:
    stack = trace_stack(0.01, max_blocks=min(1 << 16, trace.num_unique // 2))
    blocks, tokens = sampled_hits(trace, stack)
    assert stack.rate == pytest.approx(0.01)
    for found, weights in ((blocks, None), (tokens, trace.num_tokens)):
        errors = np.array(found.rates(sizes_of(trace))) - exact_rates(trace, weights)
        assert abs(errors).max() < 0.01
    assert (blocks.total, tokens.total) == (trace.num_accesses, trace.total_tokens)


def test_live_counts_stay_within_a_point_with_a_small_sample(trace: Accesses) -> None:
    """As an engine counts them: a quarter of the distinct blocks fits, and most of that is for the newest."""
    stack, buckets = SampledStack(trace.num_unique // 4), CapacityBuckets(BLOCK)
    for number, keys in enumerate(np.split(hashed(trace.block_ids), trace.starts[1:-1])):
        buckets.add(stack.look_up(keys), stack.rate, 0)
        stack.touch(keys)
        if number % 100 == 0:
            buckets.counts()
    buckets.check()
    counts = ReuseCounts(buckets.bounds, buckets.counts(), stack.rate)
    assert counts.sample_rate < 1
    binned = BinnedCurve(counts.bounds, counts.tokens[:-1], counts.tokens[-1])
    assert binned.total == trace.num_accesses * BLOCK
    rates = [binned.hits((size or 0) * BLOCK) / binned.total for size in sizes_of(trace)]
    assert abs(np.array(rates) - exact_rates(trace, None)).max() < 0.01


def test_a_sample_knows_what_it_does_not_know() -> None:
    stack = SampledStack(16, threshold=ALL // 2)
    stack.touch(hashed(np.arange(500)))
    kinds = stack.look_up(hashed(np.arange(1000, 2000))).kinds
    assert set(kinds.tolist()) == {UNKNOWN, SAMPLED}


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="The sample rate is 2; expected more than 0 and at most 1"):
        trace_stack(2)
