"""Tokens are drawn from the distribution that was asked for, and by a seed always the same ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.sampling import SamplingParams, SamplingState, sample

LOGITS = torch.tensor([1.0, 3.0, 2.0, -1.0, 0.0])


def draws(params: SamplingParams, logits: torch.Tensor = LOGITS, count: int = 2000) -> list[int]:
    state = SamplingState(params)
    return [sample(logits[None], [params], [state])[0] for _ in range(count)]


def test_greedy_takes_the_likeliest() -> None:
    assert draws(SamplingParams(temperature=0.0), count=3) == [1, 1, 1]


def test_top_k_of_one_is_greedy_at_any_temperature() -> None:
    assert set(draws(SamplingParams(temperature=50.0, top_k=1, seed=1), count=50)) == {1}


def test_a_tiny_top_p_is_greedy() -> None:
    assert set(draws(SamplingParams(top_p=1e-9, seed=1), count=50)) == {1}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("top_k", "kept"), [(0, 5), (5, 5), (3, 3), (99, 5)])
def test_frequencies_are_those_of_the_softmax_over_what_is_left(temperature: float, top_k: int, kept: int) -> None:
    tokens = draws(SamplingParams(temperature=temperature, top_k=top_k, seed=7))
    order = LOGITS.argsort(descending=True)[:kept]
    expected = torch.zeros(5).index_copy(0, order, (LOGITS[order] / temperature).softmax(-1))
    found = torch.bincount(torch.tensor(tokens), minlength=5) / len(tokens)
    torch.testing.assert_close(found, expected, atol=0.04, rtol=0)


def test_top_p_keeps_the_fewest_likeliest_that_reach_it() -> None:
    probabilities = torch.tensor([0.05, 0.5, 0.3, 0.1, 0.05])
    assert set(draws(SamplingParams(top_p=0.79, seed=3), probabilities.log())) == {1, 2}
    assert set(draws(SamplingParams(top_p=0.81, seed=3), probabilities.log())) == {1, 2, 3}


def test_top_p_counts_within_what_top_k_left() -> None:
    probabilities = torch.tensor([0.05, 0.5, 0.3, 0.1, 0.05])
    assert set(draws(SamplingParams(top_k=2, top_p=0.6, seed=3), probabilities.log())) == {1}


@given(st.integers(300, 2000), st.floats(0.01, 1.0), st.integers(0, 2100), st.integers(0, 2**32))
def test_a_token_is_among_those_that_a_plain_sort_leaves_in(size: int, top_p: float, top_k: int, seed: int) -> None:
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 0.1
    params = SamplingParams(top_p=top_p, top_k=top_k, seed=seed)
    values, order = logits.double().sort(descending=True)
    k = top_k or size
    mass = values[:k].softmax(-1)
    left_in = order[:k][(mass.cumsum(-1) - mass) < top_p + 1e-9].tolist()
    assert set(draws(params, logits, count=5)) <= set(left_in)


def test_the_same_seed_gives_the_same_tokens_whatever_else_is_in_the_batch() -> None:
    params = SamplingParams(seed=42)
    alone = draws(params, count=20)
    other = SamplingParams(temperature=2.0)
    state, other_state = SamplingState(params), SamplingState(other)
    batch = torch.stack([LOGITS.flip(0), LOGITS])
    together = [sample(batch, [other, params], [other_state, state])[1] for _ in range(20)]
    assert together == alone


def test_other_seeds_and_no_seed_give_other_tokens() -> None:
    runs = [tuple(draws(SamplingParams(seed=seed), count=30)) for seed in (1, 2, None, None)]
    assert len(set(runs)) == 4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; expected 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0; expected above 0"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"top_k": -1}, "top_k is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"max_tokens": 0}, "max_tokens is 0; expected at least 1"),
        ({"stop": ("",)}, "none of them empty"),
        ({"stop": ("x",) * 17}, "stop has 17 strings"),
    ],
)
def test_values_out_of_range_are_refused_with_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SamplingParams(**changes)  # type: ignore[arg-type]
