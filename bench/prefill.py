"""Prefill of 1,024 tokens of the bundled model in the engine's chunks, against `transformers` on the same weights."""

import random
from collections.abc import Iterable
from functools import partial

import torch

from bench._alternate import alternate
from bench._peers import empty_pool, one_sequence, our_model, their_model
from bench.result import Result, compare
from engine.model import LlamaModel

NUM_TOKENS = 1024
# What one engine step computes at most by default.
CHUNK_TOKENS = 512
ROUNDS = 5


def run() -> Iterable[Result]:
    ours, theirs = our_model(), their_model()
    prompt = random.Random(1).choices(range(1000, 40_000), k=NUM_TOKENS)
    kv = empty_pool(ours, NUM_TOKENS)
    inputs = torch.tensor([prompt])

    @torch.inference_mode()
    def reference() -> None:
        if theirs is not None:
            theirs(inputs, use_cache=True, logits_to_keep=1)

    for chunk in (CHUNK_TOKENS, NUM_TOKENS):
        mine, other = alternate(partial(prefill, ours, kv, prompt, chunk), reference, ROUNDS)
        yield compare(
            f"prefill of {NUM_TOKENS:,} tokens in chunks of {chunk:,}",
            ours=mine * 1000,
            reference=None if theirs is None else other * 1000,
            reference_name="transformers, same run",
            unit="ms",
            bar=1.0,
            better="lower",
        )


def prefill(model: LlamaModel, kv: torch.Tensor, prompt: list[int], chunk: int) -> None:
    for start in range(0, len(prompt), chunk):
        model.forward(one_sequence(prompt[start : start + chunk], start), kv)
