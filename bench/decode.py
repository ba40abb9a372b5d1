"""Single-stream greedy decode of the bundled model, against `transformers` on the same weights."""

import random
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import torch

from bench._peers import empty_pool, one_sequence, our_model, their_model
from bench.result import Result, compare
from engine.model import LlamaModel

PROMPT_TOKENS = (64, 1024)
NEW_TOKENS = 24
ROUNDS = 3

Step = Callable[[], None]


def run() -> Iterable[Result]:
    ours, theirs = our_model(), their_model()
    for num_tokens in PROMPT_TOKENS:
        prompt = random.Random(1).choices(range(1000, 40_000), k=num_tokens)
        mine: list[float] = []
        other: list[float] = []
        for _ in range(ROUNDS):
            steps = [(our_steps(ours, prompt), mine)]
            if theirs is not None:
                steps.append((their_steps(theirs, prompt), other))
            for _ in range(NEW_TOKENS):
                for step, seconds in steps:
                    started = time.perf_counter()
                    step()
                    seconds.append(time.perf_counter() - started)
        yield compare(
            f"decode after {num_tokens:,} tokens, one stream",
            ours=median(mine) * 1000,
            reference=median(other) * 1000 if other else None,
            reference_name="transformers, same run",
            unit="ms/token",
            bar=1.0,
            better="lower",
        )


def our_steps(model: LlamaModel, prompt: list[int]) -> Step:
    """A function that generates the next token each time it is called."""
    kv = empty_pool(model, len(prompt) + NEW_TOKENS + 1)
    tokens = [int(model.forward(one_sequence(prompt, 0), kv).argmax())]

    def step() -> None:
        logits = model.forward(one_sequence(tokens[-1:], len(prompt) + len(tokens) - 1), kv)
        tokens.append(int(logits.argmax()))

    return step


def their_steps(model: Any, prompt: list[int]) -> Step:
    with torch.inference_mode():
        out = model(torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
    state = {"cache": out.past_key_values, "token": out.logits[:, -1].argmax(-1, keepdim=True)}

    @torch.inference_mode()
    def step() -> None:
        out = model(state["token"], past_key_values=state["cache"], use_cache=True)
        state["token"] = out.logits[:, -1].argmax(-1, keepdim=True)

    return step
