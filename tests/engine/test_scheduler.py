"""What one step computes, who waits, who is preempted."""

from collections.abc import Sequence

import pytest

from engine.request import BusyError, RequestError
from engine.scheduler import Chunk
from tests.engine.harness import BLOCK_BYTES, make_rig
from tests.engine.mock_runner import expected_tokens
from tiers import RefusedError, Tier


def prompt(start: int, length: int) -> list[int]:
    return [(start * 31 + index * 7) % 97 for index in range(length)]


def test_a_request_generates_what_the_model_says_and_ends_by_length() -> None:
    rig = make_rig()
    answer = rig.ask("a", prompt(1, 10), 5)
    assert answer.tokens == expected_tokens(prompt(1, 10), 5)
    assert answer.reason == "length"
    assert answer.usage.generated_tokens == 5


def test_an_end_token_ends_a_request_unless_it_is_ignored() -> None:
    tokens = expected_tokens(prompt(1, 10), 8)
    rig = make_rig(eos_ids=frozenset({tokens[2]}))
    stopped = rig.ask("a", prompt(1, 10), 8)
    ignoring = rig.submit("b", prompt(1, 10), 8, ignore_eos=True)
    rig.run()
    assert (stopped.tokens, stopped.reason) == (tokens[:3], "stop")
    assert (ignoring.tokens, ignoring.reason) == (tokens, "length")


def test_a_long_prompt_is_computed_in_chunks_while_another_request_decodes() -> None:
    rig = make_rig(gpu=32, max_num_batched_tokens=8)
    first = rig.submit("a", prompt(1, 4), 12)
    rig.step()
    second = rig.submit("b", prompt(2, 35), 2)
    steps_until_second_token = 0
    while not second.tokens:
        rig.step()
        steps_until_second_token += 1
    assert steps_until_second_token == 5  # 35 prompt tokens beside one decode in a budget of 8
    assert len(first.tokens) == 6
    rig.run()
    assert first.tokens == expected_tokens(prompt(1, 4), 12)
    assert second.tokens == expected_tokens(prompt(2, 35), 2)


def test_no_step_computes_more_than_its_budget() -> None:
    rig = make_rig(gpu=64, max_num_batched_tokens=8)
    for number in range(6):
        rig.submit(f"r{number}", prompt(number, 9), 4)
    seen: list[int] = []
    run = rig.runner.run

    def watched(chunks: Sequence[Chunk]) -> list[int]:
        seen.append(sum(chunk.length for chunk in chunks))
        return run(chunks)

    rig.runner.run = watched  # type: ignore[method-assign]
    rig.run()
    assert max(seen) == 8


def test_no_more_requests_run_than_allowed() -> None:
    rig = make_rig(gpu=64, max_num_seqs=2)
    for number in range(5):
        rig.submit(f"r{number}", prompt(number, 5), 6)
    most = 0
    while rig.engine.num_unfinished:
        rig.step()
        most = max(most, rig.engine.snapshot().num_running)
    assert most == 2


def test_requests_start_in_the_order_in_which_they_came() -> None:
    rig = make_rig(gpu=8, max_num_seqs=1)
    answers = [rig.submit(f"r{number}", prompt(number, 9), 2) for number in range(4)]
    order: list[int] = []
    while rig.engine.num_unfinished:
        rig.step()
        order += [n for n, answer in enumerate(answers) if answer.finished and n not in order]
    assert order == [0, 1, 2, 3]


def test_the_youngest_request_gives_its_blocks_back_when_they_run_out() -> None:
    rig = make_rig(gpu=6, max_num_batched_tokens=32)
    old = rig.submit("old", prompt(1, 8), 16)
    young = rig.submit("young", prompt(2, 8), 16)
    rig.run()
    assert old.tokens == expected_tokens(prompt(1, 8), 16)
    assert young.tokens == expected_tokens(prompt(2, 8), 16)
    assert old.usage.num_preemptions == 0
    assert young.usage.num_preemptions >= 1
    assert rig.engine.snapshot().counters.preemptions == young.usage.num_preemptions


def test_an_aborted_request_ends_at_once_and_frees_its_blocks() -> None:
    rig = make_rig()
    answer = rig.submit("a", prompt(1, 10), 50)
    for _ in range(3):
        rig.step()
    rig.engine.abort("a")
    rig.step()
    assert answer.reason == "abort"
    assert rig.engine.snapshot().cache[Tier.GPU].pinned_blocks == 0
    rig.engine.abort("a")
    rig.engine.abort("never there")
    rig.step()


def test_a_request_stopped_by_its_text_counts_as_stopped() -> None:
    rig = make_rig()
    answer = rig.submit("a", prompt(1, 10), 50)
    rig.step()
    rig.engine.abort("a", "stop")
    rig.step()
    assert answer.reason == "stop"
    assert rig.engine.snapshot().counters.requests == {"stop": 1, "length": 0, "abort": 0, "error": 0}


def test_a_prompt_beyond_the_models_length_is_refused_with_numbers() -> None:
    rig = make_rig(max_model_len=32, gpu=64)
    with pytest.raises(RequestError, match=r"30 tokens and up to 3 more .* at most 32"):
        rig.submit("a", prompt(1, 30), 3)


def test_a_request_that_the_gpu_tier_can_never_hold_is_refused_with_numbers() -> None:
    rig = make_rig(gpu=4)
    with pytest.raises(RequestError, match=r"needs 5 blocks of 4 tokens .* has 4 \(16 tokens\)"):
        rig.submit("a", prompt(1, 16), 2)
    assert rig.ask("b", prompt(1, 14), 3).reason == "length"


def test_an_id_may_be_used_again_only_after_its_request_has_ended() -> None:
    rig = make_rig()
    rig.submit("a", prompt(1, 5))
    with pytest.raises(RequestError, match="unfinished request 'a'"):
        rig.submit("a", prompt(1, 5))
    rig.run()
    assert rig.ask("a", prompt(1, 5)).reason == "length"


def test_too_many_waiting_requests_are_refused_for_now() -> None:
    rig = make_rig(max_num_seqs=1, max_num_waiting=2)
    for number in range(3):
        rig.submit(f"r{number}", prompt(number, 5))
    with pytest.raises(BusyError, match="3 requests are unfinished"):
        rig.submit("r3", prompt(3, 5))
    rig.run()
    assert rig.ask("r3", prompt(3, 5)).reason == "length"


def test_the_gpu_tier_refuses_to_shrink_below_what_an_unfinished_request_may_need() -> None:
    rig = make_rig(gpu=16)
    answer = rig.submit("a", prompt(1, 20), 13)
    rig.step()
    refused = rig.engine.resize(Tier.GPU, 7 * BLOCK_BYTES)
    applied = rig.engine.resize(Tier.GPU, 8 * BLOCK_BYTES)
    rig.step()
    with pytest.raises(RefusedError, match=r"8 blocks.*request a"):
        refused.result(0)
    applied.result(0)
    rig.run()
    assert answer.tokens == expected_tokens(prompt(1, 20), 13)
    assert rig.engine.snapshot().cache[Tier.GPU].capacity_blocks == 8


def test_the_gpu_tier_refuses_to_vanish() -> None:
    rig = make_rig(gpu=16)
    refused = rig.engine.resize(Tier.GPU, 0)
    rig.step()
    with pytest.raises(RefusedError, match="attention needs room"):
        refused.result(0)


def test_a_request_whose_room_was_taken_while_it_was_on_its_way_ends_with_a_clear_error() -> None:
    rig = make_rig(gpu=16)
    shrunk = rig.engine.resize(Tier.GPU, 4 * BLOCK_BYTES)
    answer = rig.submit("a", prompt(1, 20), 13)
    rig.step()
    shrunk.result(0)
    assert answer.reason == "error"
    assert "needs 8 blocks" in str(answer.error)


def test_a_snapshot_says_how_small_the_gpu_tier_may_become_and_why() -> None:
    rig = make_rig(gpu=16)
    assert rig.engine.snapshot().gpu_floor.num_bytes == BLOCK_BYTES
    rig.submit("a", prompt(1, 20), 13)
    rig.step()
    floor = rig.engine.snapshot().gpu_floor
    assert (floor.num_blocks, floor.num_bytes) == (8, 8 * BLOCK_BYTES)
    assert "request a" in floor.reason


def test_a_shrinking_gpu_tier_loses_no_running_request() -> None:
    rig = make_rig(gpu=32, cpu=32, max_num_batched_tokens=64)
    answers = [rig.submit(f"r{number}", prompt(number, 17), 12) for number in range(4)]
    for _ in range(3):
        rig.step()
    applied = rig.engine.resize(Tier.GPU, 8 * BLOCK_BYTES)
    rig.step()
    applied.result(0)
    rig.run()
    assert [answer.tokens for answer in answers] == [expected_tokens(prompt(n, 17), 12) for n in range(4)]
    gpu = rig.engine.snapshot().cache[Tier.GPU]
    assert gpu.capacity_blocks == 8
    assert gpu.used_bytes <= 8 * BLOCK_BYTES


def test_every_tier_goes_to_its_smallest_size_and_back_under_traffic() -> None:
    rig = make_rig(gpu=24, cpu=16, max_num_batched_tokens=64)
    answers = []
    for turn, (gpu, cpu) in enumerate([(24, 16), (8, 0), (24, 0), (8, 16), (24, 16)]):
        rig.engine.resize(Tier.GPU, gpu * BLOCK_BYTES)
        rig.engine.resize(Tier.CPU, cpu * BLOCK_BYTES)
        answers += [(number, rig.submit(f"{turn}-{number}", prompt(number, 17), 4)) for number in range(5)]
        rig.run()
    assert all(answer.tokens == expected_tokens(prompt(number, 17), 4) for number, answer in answers)
