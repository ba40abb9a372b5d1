"""Faults that public engines had in their counts: each happened, none may happen here."""

from pathlib import Path

import pytest

from engine.sequence import Admission
from engine.stats import EngineStats
from engine.tenants import Tenants
from tests.engine.harness import BLOCK_BYTES, Rig, make_rig
from tests.engine.mock_runner import expected_tokens
from tests.engine.test_scheduler import prompt
from tiers import Tier, chain_keys, root_key


def hits(rig: Rig) -> int:
    return sum(rig.engine.snapshot().counters.hit_tokens.values())


def test_the_recomputation_of_a_preempted_request_is_neither_prompt_nor_hit() -> None:
    """vLLM #25780: re-prefilled tokens counted as hits, 30 % instead of 0.2 % on random prompts."""
    rig = make_rig(gpu=6, cpu=32, max_num_batched_tokens=32)
    answers = [rig.submit(f"r{number}", prompt(number, 8), 16) for number in range(3)]
    rig.run()
    counters = rig.engine.snapshot().counters
    assert counters.preemptions >= 1
    assert counters.prompt_tokens == counters.computed_tokens == 3 * 8
    assert hits(rig) == 0
    assert [answer.tokens for answer in answers] == [expected_tokens(prompt(n, 8), 16) for n in range(3)]


def test_a_request_that_waits_for_blocks_is_counted_once_however_often_it_is_tried() -> None:
    """vLLM #43736, #48860: a lookup was counted again at every scheduling try."""
    rig = make_rig(gpu=8, max_num_batched_tokens=32)
    rig.ask("before", prompt(7, 8))
    rig.submit("holds all", prompt(1, 20), 12)
    rig.step()
    waiting = rig.submit("waits", [*prompt(7, 8), 1, 2], 2)
    for _ in range(8):
        rig.step()
    assert rig.engine.snapshot().num_waiting == 1
    assert rig.engine.snapshot().counters.prefix_cache_queries == 8 + 20
    rig.run()
    counters = rig.engine.snapshot().counters
    assert counters.prefix_cache_queries == counters.prompt_tokens == 8 + 20 + 10
    assert waiting.usage.prompt_tokens == 10


def test_a_tier_that_reports_more_than_the_prompt_has_is_refused_and_the_counters_stay() -> None:
    """vLLM #43031, LMCache #2912, SGLang #25973: an over-report made a counter negative and killed the stream."""
    with pytest.raises(ValueError, match="12 tokens of a prompt of 12 were reported as hits"):
        Admission(0.0, 12, 4, (Tier.REMOTE,) * 3)
    with pytest.raises(ValueError, match="16 tokens of a prompt of 12"):
        Admission(0.0, 12, 4, (Tier.REMOTE,) * 4)


def test_the_last_prompt_token_is_always_computed() -> None:
    """A fully cached prompt of n tokens has at most n - 1 hit tokens: the logits of the last one are needed."""
    rig = make_rig(gpu=16)
    for length in (1, 3, 4, 5, 8, 9, 12):
        rig.ask(f"cold {length}", prompt(3, length))
        warm = rig.ask(f"warm {length}", prompt(3, length))
        assert sum(warm.usage.hit_tokens.values()) == (length - 1) // 4 * 4
        assert warm.usage.computed_tokens >= 1


def test_identical_requests_that_start_together_all_miss() -> None:
    """What people misread as a broken cache: nothing can be reused before it has been computed."""
    rig = make_rig(gpu=32, max_num_batched_tokens=64)
    together = [rig.submit(f"r{number}", prompt(1, 13)) for number in range(3)]
    rig.run()
    assert hits(rig) == 0
    late = rig.ask("late", prompt(1, 13))
    assert late.usage.hit_tokens[Tier.GPU] == 12
    assert all(answer.tokens == late.tokens for answer in together)


def test_a_request_that_skips_the_cache_is_neither_queried_nor_a_miss() -> None:
    """vLLM #57596: requests that skip reading counted as external misses."""
    rig = make_rig(gpu=32)
    rig.ask("a", prompt(1, 12))
    before = rig.engine.snapshot().counters
    skipping = rig.submit("skips", prompt(1, 12), cache="off")
    rig.run()
    after = rig.engine.snapshot().counters
    assert (after.prefix_cache_queries, after.external_queries) == (
        before.prefix_cache_queries,
        before.external_queries,
    )
    assert sum(skipping.usage.hit_tokens.values()) == 0
    assert skipping.usage.computed_tokens == 12
    assert after.computed_tokens == before.computed_tokens + 12
    assert skipping.tokens == expected_tokens(prompt(1, 12), 3)


def test_a_request_that_skips_the_cache_leaves_nothing_in_it() -> None:
    """The same flag on the storing side: what may not be read may not be kept either."""
    rig = make_rig(gpu=32)
    rig.submit("skips", prompt(1, 12), cache="off")
    rig.run()
    assert rig.engine.snapshot().cache[Tier.GPU].resident_blocks == 0


def test_external_queries_are_what_the_gpu_tier_did_not_have() -> None:
    """vLLM #30522: external queries included local hits."""
    rig = make_rig(gpu=6, cpu=32)
    for number in (1, 2, 1, 1):
        rig.ask(f"r{number}-{rig.runner.num_steps}", prompt(number, 16))
    counters = rig.engine.snapshot().counters
    assert counters.prefix_cache_hits == counters.hit_tokens[Tier.GPU] > 0
    assert counters.external_hits == counters.hit_tokens[Tier.CPU] > 0
    assert counters.external_queries == 4 * 16 - counters.prefix_cache_hits


def test_the_denominator_does_not_change_when_a_slower_tier_is_switched_on() -> None:
    """A hit rate's denominator is every prompt token, with offloading or without."""
    queries = []
    for cpu in (0, 32):
        rig = make_rig(gpu=6, cpu=cpu)
        for number in range(6):
            rig.ask(f"r{number}", prompt(number % 2, 16))
        queries.append(rig.engine.snapshot().counters.prefix_cache_queries)
    assert queries == [96, 96]


def test_a_hit_rate_is_of_all_that_was_asked_not_of_what_was_known_to_be_there() -> None:
    """LMCache #1260: the denominator was the hits, the rate always 1."""
    rig = make_rig(gpu=32)
    rig.ask("a", prompt(1, 17))
    rig.ask("b", [*prompt(1, 8), *prompt(5, 8)])
    counters = rig.engine.snapshot().counters
    assert (counters.prefix_cache_hits, counters.prefix_cache_queries) == (8, 33)


def test_an_idle_engines_counters_stand_still() -> None:
    """LMCache #524: an absolute value fed to inc(), so that counters climb without traffic."""
    rig = make_rig(gpu=6, cpu=32)
    rig.ask("a", prompt(1, 16))
    before = rig.engine.snapshot()
    for _ in range(20):
        rig.step()
    assert rig.engine.snapshot() == before


def test_a_decode_step_does_not_touch_the_hit_counters() -> None:
    """SGLang #26608: a gauge overwritten by every batch, zeroed by decodes. Here only admissions count."""
    rig = make_rig(gpu=32)
    rig.ask("a", prompt(1, 12))
    warm = rig.submit("b", prompt(1, 12), 9)
    rig.step()
    after_admission = hits(rig)
    rig.run()
    assert hits(rig) == after_admission == warm.usage.hit_tokens[Tier.GPU] == 8


def test_a_prompt_in_several_chunks_is_counted_once() -> None:
    """SGLang #8533: the hit count was bumped by every chunk."""
    rig = make_rig(gpu=32, max_num_batched_tokens=8)
    rig.ask("a", prompt(1, 24))
    rig.ask("b", [*prompt(1, 24), *prompt(9, 40)])
    counters = rig.engine.snapshot().counters
    assert counters.prompt_tokens == 24 + 64
    assert counters.hit_tokens[Tier.GPU] == 24


def test_no_sentinel_reaches_a_counter() -> None:
    """vllm-omni #1468: -1 for "not known yet" was added up."""
    rig = make_rig(gpu=32)
    answer = rig.submit("a", prompt(1, 12))
    rig.engine.abort("a")
    rig.run()
    usage = answer.usage
    assert (usage.prompt_tokens, usage.computed_tokens, usage.generated_tokens) == (0, 0, 0)
    assert usage.ttft_seconds is usage.queue_seconds is None
    assert usage.slowest_tier is None


def test_a_block_promoted_from_a_slower_tier_counts_there_for_this_request_and_as_gpu_for_the_next() -> None:
    """vLLM's rule that we share: a promotion's origin is kept for the request that asked for it."""
    rig = make_rig(gpu=6, cpu=32)
    rig.ask("a", prompt(1, 16))
    rig.ask("b", prompt(2, 16))
    tiers = [rig.ask(f"a{number}", prompt(1, 16)).usage.slowest_tier for number in range(2)]
    assert tiers == [Tier.CPU, Tier.GPU]


def test_a_prompt_that_lies_in_two_tiers_is_booked_block_by_block_and_no_remainder_to_gpu() -> None:
    """TensorRT-LLM #18519: what was left over was booked to gpu, so that the sum was right and the split wrong."""
    rig = make_rig(gpu=6, cpu=32)
    rig.ask("a", prompt(1, 16))
    rig.ask("b", prompt(2, 12))
    usage = rig.ask("a again", [*prompt(1, 16), 1, 2], 1).usage
    assert usage.prompt_tiers == [(Tier.GPU, 8), (Tier.CPU, 8), (None, 2)]
    assert (usage.hit_tokens[Tier.GPU], usage.hit_tokens[Tier.CPU], usage.slowest_tier) == (8, 8, Tier.CPU)


def test_hits_never_exceed_what_was_asked_however_often_blocks_come_and_go() -> None:
    """Mooncake's hit rate divided all hits ever by the objects of this moment: above 1."""
    rig = make_rig(gpu=6, cpu=2)
    for number in range(24):
        rig.ask(f"r{number}", prompt(number % 3, 13), 1)
        if number % 5 == 4:
            rig.engine.clear(Tier.CPU)
        counters = rig.engine.snapshot().counters
        assert 0 <= counters.prefix_cache_hits + counters.external_hits < counters.prefix_cache_queries


def test_a_load_that_fails_is_matched_again_and_only_the_admission_that_stands_is_counted(tmp_path: Path) -> None:
    """vLLM #43031: a tier that promises more than it delivers. The block whose load failed is a miss."""
    rig = make_rig(gpu=5, disk=32, path=tmp_path)
    first = rig.ask("a", prompt(1, 17), 1)
    for number in (2, 3):
        rig.ask(f"push {number}", prompt(number, 17), 1)
    corrupt_block(rig, tmp_path, prompt(1, 17), index=2)
    again = rig.ask("a again", prompt(1, 17), 1)
    assert again.tokens == first.tokens == expected_tokens(prompt(1, 17), 1)
    assert again.usage.prompt_tiers == [(Tier.DISK, 8), (None, 9)]
    assert rig.engine.snapshot().counters.hit_tokens[Tier.DISK] == 8
    rig.close()


def corrupt_block(rig: Rig, folder: Path, tokens: list[int], index: int) -> None:
    """Flip the last byte of the block's file."""
    config = rig.cache.config
    root = root_key(fingerprint=config.fingerprint, salt="", block_size=config.block_size, dtype=config.slab.dtype)
    key = chain_keys(root, tokens, config.block_size)[index]
    (file,) = folder.rglob(f"*{key.hex()}*")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def test_a_failure_in_measuring_never_fails_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM #43031: a ValueError of the metrics library killed the client's stream."""
    rig = make_rig(gpu=32)

    def broken(self: object, *args: object) -> None:
        raise ValueError("Counters can only be incremented by non-negative amounts.")

    monkeypatch.setattr("engine.stats.Histogram.observe", broken)
    answer = rig.ask("a", prompt(1, 12), 4)
    assert (answer.reason, answer.tokens) == ("length", expected_tokens(prompt(1, 12), 4))


def test_every_path_that_ends_a_request_counts_it_once() -> None:
    """vllm-ascend #16639: a counter stays 0 on one code path while the thing happens."""
    rig = make_rig(gpu=16, eos_ids=frozenset({expected_tokens(prompt(1, 10), 1)[0]}))
    rig.ask("stops", prompt(1, 10))
    rig.ask("runs out", prompt(2, 10), 1)
    rig.submit("aborted", prompt(3, 10))
    rig.engine.abort("aborted")
    rig.run()
    rig.runner.fail_next = RuntimeError("out of luck")
    rig.ask("fails", prompt(4, 10))
    assert rig.engine.snapshot().counters.requests == {"stop": 1, "length": 1, "abort": 1, "error": 1}


def test_stats_ignore_nothing_when_a_tier_is_resized_between_requests() -> None:
    """A resize moves blocks, not counts: the sums before and after it go on."""
    rig = make_rig(gpu=16, cpu=16)
    rig.ask("a", prompt(1, 16))
    before = rig.engine.snapshot().counters
    rig.engine.resize(Tier.CPU, 4 * BLOCK_BYTES)
    rig.engine.resize(Tier.GPU, 6 * BLOCK_BYTES)
    rig.run()
    assert rig.engine.snapshot().counters == before
    assert EngineStats(Tenants((), 0)).counters() != before
