"""Which token comes next: greedy, temperature, top-k, top-p, seeded. Knows nothing about the model or the batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

MAX_STOP_STRINGS = 16
# Below this, logits divided by it would exceed what fp32 can tell apart: greedy is what is meant.
_MIN_TEMPERATURE = 1e-5
# Nearly always enough to hold the top-p mass; a full sort of a vocabulary takes 20 times longer.
_FIRST_LOOK = 256


@dataclass(frozen=True)
class SamplingParams:
    """How a request's tokens are chosen and when it ends.

    `temperature` 0 is greedy; `top_k` 0 and `top_p` 1 leave all tokens in. `seed` None draws a fresh one.
    Raises ValueError with one sentence where a value is out of range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise ValueError(f"temperature is {self.temperature}; expected 0 (greedy) to 100.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; expected above 0 and at most 1.")
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k}; expected 0 (off) or the number of tokens to choose from.")
        if self.seed is not None and not -(2**63) <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}; expected an integer of at most 64 bits.")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; expected at least 1.")
        if len(self.stop) > MAX_STOP_STRINGS or not all(self.stop):
            raise ValueError(
                f"stop has {len(self.stop)} strings; expected up to {MAX_STOP_STRINGS}, none of them empty."
            )

    @property
    def is_greedy(self) -> bool:
        return self.temperature < _MIN_TEMPERATURE


class SamplingState:
    """One request's random numbers: the same seed gives the same ones, whatever else runs in the batch."""

    def __init__(self, params: SamplingParams) -> None:
        seed = None if params.seed is None else params.seed % 2**64
        self._generator = np.random.Generator(np.random.Philox(seed))

    def uniform(self) -> float:
        """The next number in [0, 1); one is drawn for each sampled token."""
        return float(self._generator.random())


def sample(logits: torch.Tensor, params: Sequence[SamplingParams], states: Sequence[SamplingState]) -> list[int]:
    """One token id for each row of `logits` [n, vocab_size], n >= 1."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    for row, (param, state) in enumerate(zip(params, states, strict=True)):
        if not param.is_greedy:
            tokens[row] = _draw(logits[row], param, state.uniform())
    return tokens


def _draw(logits: torch.Tensor, params: SamplingParams, uniform: float) -> int:
    """The token at which the cumulative probability of those left in passes `uniform` of their sum."""
    scaled = logits.double() / params.temperature
    if params.top_k == 0 and params.top_p == 1:
        return _pick(scaled.softmax(-1), uniform)
    probabilities, ids = _most_likely(scaled, params)
    return int(ids[_pick(probabilities, uniform)])


def _most_likely(scaled: torch.Tensor, params: SamplingParams) -> tuple[torch.Tensor, torch.Tensor]:
    """(probabilities, ids) of what top-k and then top-p leave in, most likely first; the sum need not be 1."""
    vocab_size = len(scaled)
    k = min(params.top_k or vocab_size, vocab_size)
    top, ids = scaled.topk(min(k, _FIRST_LOOK))
    total = scaled.logsumexp(-1) if k == vocab_size else scaled.topk(k).values.logsumexp(-1)
    probabilities = (top - total).exp()
    if len(top) < k and probabilities.sum() < params.top_p:
        top, ids = scaled.topk(k)
        probabilities = (top - total).exp()
    # A token stays while those before it have not reached top_p: the first one always does.
    before = probabilities.cumsum(-1) - probabilities
    num_kept = max(int((before < params.top_p).sum()), 1)
    return probabilities[:num_kept], ids[:num_kept]


def _pick(probabilities: torch.Tensor, uniform: float) -> int:
    cumulative = probabilities.cumsum(-1)
    place = int(torch.searchsorted(cumulative, uniform * cumulative[-1], right=True))
    return min(place, len(probabilities) - 1)
