"""Seconds a prompt token at each position, from steps of known lengths."""

import math

import pytest

from engine.prefill_cost import PrefillCost
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from engine.scheduler import Chunk, Plan
from engine.sequence import Sequence


def chunk(start: int, length: int, num_prompt: int = 100_000) -> Chunk:
    request = GenerationRequest("r", [1] * num_prompt, SamplingParams(max_tokens=1), cache="off")
    sequence = Sequence(
        request, root=b"", block_size=16, max_model_len=num_prompt, on_event=lambda event: None, now=0.0
    )
    return Chunk(sequence, start, length, [], False)


def step(seconds: float, *chunks: Chunk) -> Plan:
    return Plan(0, list(chunks), seconds=seconds)


def test_an_engine_that_has_computed_nothing_knows_no_cost() -> None:
    assert PrefillCost().seconds(0, 16) == math.inf


def test_later_positions_have_a_cost_of_their_own() -> None:
    cost = PrefillCost()
    cost.ran(step(1.0, chunk(0, 100)))
    cost.ran(step(4.0, chunk(4096, 100)))
    assert cost.seconds(0, 16) == pytest.approx(0.16)
    assert cost.seconds(4096, 16) == pytest.approx(0.64)
    assert cost.seconds(2000, 16) == pytest.approx(0.16), "the nearest shorter one"
    assert cost.seconds(10**9, 16) == pytest.approx(0.64)


def test_without_a_shorter_one_the_shortest_that_was_measured_counts() -> None:
    cost = PrefillCost()
    cost.ran(step(4.0, chunk(4096, 100)))
    assert cost.seconds(0, 100) == pytest.approx(4.0)


def test_a_steps_seconds_are_shared_by_all_its_tokens() -> None:
    cost = PrefillCost()
    decodes = [chunk(50, 1, num_prompt=10) for _ in range(20)]
    cost.ran(step(1.2, chunk(0, 60), chunk(512, 40), *decodes))
    assert cost.seconds(0, 1) == cost.seconds(600, 1) == pytest.approx(0.01)


def test_short_steps_tell_nothing() -> None:
    cost = PrefillCost()
    cost.ran(step(1.0, chunk(0, 63)))
    cost.ran(step(1.0, *[chunk(50, 1, num_prompt=10) for _ in range(100)]))
    assert cost.seconds(0, 16) == math.inf


def test_what_was_measured_long_ago_is_forgotten() -> None:
    cost = PrefillCost()
    for _ in range(50):
        cost.ran(step(10.0, chunk(0, 512)))
    for _ in range(50):
        cost.ran(step(1.0, chunk(0, 512)))
    assert cost.seconds(0, 512) == pytest.approx(1.0, rel=0.1)
