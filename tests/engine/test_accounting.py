"""Which tier every prompt token is booked to: at admission, once, where the block lay at the moment of the match."""

from pathlib import Path

from tests.engine.harness import make_rig
from tests.engine.mock_runner import expected_tokens
from tests.engine.test_scheduler import prompt
from tiers import Tier


def test_a_first_prompt_is_computed_and_its_repetition_read_from_gpu_but_for_the_last_block() -> None:
    rig = make_rig()
    cold, warm = rig.ask("cold", prompt(1, 12)), rig.ask("warm", prompt(1, 12))
    assert (cold.usage.hit_tokens[Tier.GPU], cold.usage.computed_tokens) == (0, 12)
    assert (warm.usage.hit_tokens[Tier.GPU], warm.usage.computed_tokens) == (8, 4)
    assert warm.usage.prompt_tiers == [(Tier.GPU, 8), (None, 4)]
    assert warm.tokens == cold.tokens == expected_tokens(prompt(1, 12), 3)


def test_what_was_generated_is_reused_as_part_of_the_next_prompt() -> None:
    rig = make_rig()
    first = rig.ask("turn 1", prompt(1, 10), 7)
    follow_up = [*prompt(1, 10), *first.tokens, 5, 6]
    second = rig.ask("turn 2", follow_up)
    assert second.usage.hit_tokens[Tier.GPU] == 16  # of 10 + 7 tokens the last one was never fed to the model
    assert second.tokens == expected_tokens(follow_up, 3)


def test_blocks_that_left_for_cpu_are_booked_to_cpu_once_and_to_gpu_the_next_time() -> None:
    rig = make_rig(gpu=5, cpu=16)
    rig.ask("a", prompt(1, 16))
    rig.ask("b", prompt(2, 16))
    again = rig.ask("a again", prompt(1, 16))
    once_more = rig.ask("a once more", prompt(1, 16))
    assert again.usage.hit_tokens[Tier.CPU] == 12
    assert again.usage.slowest_tier is Tier.CPU
    assert once_more.usage.hit_tokens[Tier.GPU] == 12
    assert again.tokens == once_more.tokens == expected_tokens(prompt(1, 16), 3)


def test_blocks_that_left_for_disk_are_booked_to_disk(tmp_path: Path) -> None:
    rig = make_rig(gpu=5, disk=32, path=tmp_path)
    rig.ask("a", prompt(1, 16))
    rig.ask("b", prompt(2, 16))
    again = rig.ask("a again", prompt(1, 16))
    assert again.usage.hit_tokens[Tier.DISK] == 12
    assert again.tokens == expected_tokens(prompt(1, 16), 3)
    rig.close()


def test_another_salt_shares_nothing() -> None:
    rig = make_rig()
    rig.ask("a", prompt(1, 12))
    other = rig.submit("b", prompt(1, 12), salt="another tenant")
    rig.run()
    assert sum(other.usage.hit_tokens.values()) == 0


def test_time_to_first_token_is_filed_under_the_slowest_tier_read() -> None:
    rig = make_rig(gpu=5, cpu=16)
    rig.ask("a", prompt(1, 16))
    rig.ask("b", prompt(2, 16))
    rig.ask("a again", prompt(1, 16))
    ttft = rig.engine.snapshot().counters.ttft
    assert {name: histogram.count for name, histogram in ttft.items()} == {
        "none": 2, "gpu": 0, "cpu": 1, "disk": 0, "remote": 0,
    }  # fmt: skip


def test_every_counter_exists_from_the_start_with_zero() -> None:
    counters = make_rig().engine.snapshot().counters
    assert counters.hit_tokens == dict.fromkeys(Tier, 0)
    assert counters.requests == {"stop": 0, "length": 0, "abort": 0, "error": 0}
    assert set(counters.ttft) == {"none", *Tier}
    assert counters.inter_token.count == counters.request_seconds.count == 0


def test_usage_and_counters_say_the_same() -> None:
    rig = make_rig(gpu=5, cpu=16)
    answers = [rig.ask(f"r{number}", prompt(number % 3, 16)) for number in range(9)]
    counters = rig.engine.snapshot().counters
    for tier in Tier:
        assert counters.hit_tokens[tier] == sum(answer.usage.hit_tokens[tier] for answer in answers)
    assert counters.computed_tokens == sum(answer.usage.computed_tokens for answer in answers)
    assert counters.prompt_tokens == 9 * 16
    assert counters.generated_tokens == sum(len(answer.tokens) for answer in answers)


def test_a_request_aborted_before_its_admission_counts_no_tokens() -> None:
    rig = make_rig()
    answer = rig.submit("a", prompt(1, 12))
    rig.engine.abort("a")
    rig.run()
    assert answer.usage.prompt_tokens == 0
    assert rig.engine.snapshot().counters.prompt_tokens == 0
    assert rig.engine.snapshot().counters.requests["abort"] == 1
