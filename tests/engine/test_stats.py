"""Histograms and admissions: integers that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sequence import Admission, blocks_for
from engine.stats import MIN_PREFILL_TOKENS, REQUEST_BOUNDS, TTFT_BOUNDS, EngineStats, Histogram
from engine.tenants import Tenants
from tests.engine.harness import FakeClock, make_rig
from tiers import TIERS, Tier


@given(st.lists(st.floats(0, 10_000), max_size=50))
def test_a_histogram_puts_every_observation_into_the_first_bucket_that_holds_it(seconds: list[float]) -> None:
    histogram = Histogram(TTFT_BOUNDS)
    for value in seconds:
        histogram.observe(value)
    counts = histogram.counts()
    for index, bound in enumerate(TTFT_BOUNDS):
        assert sum(counts.counts[: index + 1]) == sum(value <= bound for value in seconds)
    assert counts.count == len(seconds)
    assert counts.sum_seconds == pytest.approx(sum(seconds))


def test_bounds_grow() -> None:
    for bounds in (TTFT_BOUNDS, REQUEST_BOUNDS):
        assert list(bounds) == sorted(set(bounds))


@given(st.lists(st.sampled_from(TIERS), max_size=12), st.integers(1, 9), st.sampled_from([1, 4, 16]))
def test_an_admission_splits_the_prompt_exactly(tiers: list[Tier], rest: int, block_size: int) -> None:
    admission = Admission(0.0, len(tiers) * block_size + rest, block_size, tuple(tiers))
    assert admission.prompt_tokens == sum(admission.hit_tokens.values()) + admission.computed_tokens
    assert sum(count for _, count in admission.prompt_tiers) == admission.prompt_tokens
    assert admission.computed_tokens >= 1
    expanded = [tier for tier, count in admission.prompt_tiers[:-1] for _ in range(count // block_size)]
    assert expanded == tiers
    assert admission.slowest_tier == (max(tiers, key=TIERS.index) if tiers else None)


@given(st.integers(0, 200), st.integers(1, 32))
def test_blocks_hold_at_least_the_tokens_and_less_than_one_more(num_tokens: int, block_size: int) -> None:
    num_blocks = blocks_for(num_tokens, block_size)
    assert num_blocks * block_size >= num_tokens > (num_blocks - 1) * block_size or num_tokens == num_blocks == 0


def test_new_counters_pass_their_own_check() -> None:
    EngineStats(Tenants((), 0)).counters().check()


def test_computing_is_timed_in_long_steps_and_shared_with_the_decodes_beside_it() -> None:
    stats = EngineStats(Tenants((), 0))
    stats.ran(num_prefill=MIN_PREFILL_TOKENS - 1, num_tokens=200, seconds=9.0)
    stats.ran(num_prefill=0, num_tokens=8, seconds=9.0)
    assert (stats.counters().prefill_tokens, stats.counters().prefill_seconds) == (0, 0.0)
    stats.ran(num_prefill=192, num_tokens=200, seconds=1.0)
    assert stats.counters().prefill_tokens == 192
    assert stats.counters().prefill_seconds == pytest.approx(0.96)


def test_an_engine_times_the_prompts_that_it_computes_and_not_what_it_reuses_or_decodes() -> None:
    rig = make_rig(gpu=64, max_num_batched_tokens=80, clock=FakeClock(tick=0.5))
    rig.ask("cold", [number % 90 for number in range(100)], max_tokens=20)
    rig.ask("warm", [number % 90 for number in range(100)], max_tokens=20)
    counters = rig.engine.snapshot().counters
    assert counters.prefill_tokens == 80, "the other 20 were too few to tell what a token costs"
    assert counters.prefill_seconds == pytest.approx(0.5)
