"""Blocks that are cheaper to compute than to load: counted as computed and, apart, as skipped; the text is the same."""

from collections.abc import Iterator

import pytest

from tests.engine.harness import BLOCK_SIZE, Rig, make_rig
from tests.engine.mock_runner import expected_tokens
from tiers import LoadChoice, Tier

A, B = [1] * 33, [2] * 33  # eight full blocks, and one token to be computed


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A lies in cpu but for its first two blocks; computing is free."""
    rig = make_rig(gpu=11, cpu=20)
    for number, prompt in enumerate((A, B, A, B)):
        rig.ask(f"r{number}", prompt)
    rig.engine.configure(Tier.CPU, load=LoadChoice.WHEN_CHEAPER)
    rig.step()
    rig.cache.prefill_seconds = lambda position, num_tokens: 0.0
    yield rig
    rig.close()


def test_skipped_tokens_are_computed_tokens_and_counted_once(rig: Rig) -> None:
    before = rig.engine.snapshot().counters
    answer = rig.ask("again", A)
    after = rig.engine.snapshot().counters
    found = answer.usage.hit_tokens[Tier.GPU]
    assert answer.tokens == expected_tokens(A, 3)
    assert answer.usage.hit_tokens[Tier.CPU] == 0
    assert answer.usage.computed_tokens == len(A) - found
    assert after.load_skipped_tokens[Tier.CPU] - before.load_skipped_tokens[Tier.CPU] == 8 * BLOCK_SIZE - found > 0
    assert after.computed_tokens - before.computed_tokens == answer.usage.computed_tokens
    after.check()


def test_what_was_skipped_and_computed_is_a_gpu_hit_afterwards(rig: Rig) -> None:
    rig.ask("again", A)
    assert rig.ask("and again", A).usage.hit_tokens[Tier.GPU] == 8 * BLOCK_SIZE


def test_nothing_is_skipped_where_loading_is_cheaper(rig: Rig) -> None:
    rig.cache.prefill_seconds = lambda position, num_tokens: 1e9
    assert rig.ask("again", A).usage.hit_tokens[Tier.CPU] > 0
    assert sum(rig.engine.snapshot().counters.load_skipped_tokens.values()) == 0


def test_a_request_that_is_admitted_again_skips_nothing_again() -> None:
    rig = make_rig(gpu=11, cpu=20, max_num_seqs=2)
    for number, prompt in enumerate((A, B, A, B)):
        rig.ask(f"r{number}", prompt)
    rig.engine.configure(Tier.CPU, load=LoadChoice.WHEN_CHEAPER)
    rig.step()
    rig.cache.prefill_seconds = lambda position, num_tokens: 0.0
    older, younger = rig.submit("older", [3] * 3, 36), rig.submit("younger", A[:17], 20)
    while not younger.tokens:
        rig.step()
    skipped = rig.engine.snapshot().counters.load_skipped_tokens[Tier.CPU]
    rig.run(older, younger)
    assert younger.usage.num_preemptions > 0
    assert rig.engine.snapshot().counters.load_skipped_tokens[Tier.CPU] == skipped > 0
    rig.close()


def test_the_engine_tells_the_tiers_what_computing_takes() -> None:
    rig = make_rig(gpu=64, max_num_batched_tokens=128)
    assert rig.cache.prefill_seconds(0, 16) == float("inf")
    rig.ask("long", list(range(100)))
    assert 0 < rig.cache.prefill_seconds(0, 16) < 1
    rig.close()
