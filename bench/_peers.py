"""The same weights in our model and in the `transformers` package. Knows nothing about what is measured."""

from importlib.util import find_spec
from typing import Any

import torch

from bench._real_engine import MODEL_CACHE
from engine import gguf_weights, hf_weights
from engine.batch import ForwardBatch, SeqSlice
from engine.loader import bundled
from engine.model import LlamaModel
from engine.weights import fuse

BLOCK_SIZE = 16


def quiet(text: str, share: float) -> None:
    """Progress that nobody watches."""


def our_model() -> LlamaModel:
    checkpoint = hf_weights.read(gguf_weights.converted(bundled(), MODEL_CACHE, quiet), quiet)
    return LlamaModel(checkpoint.config, fuse(checkpoint.config, checkpoint.tensors, torch.device("cpu")))


def their_model() -> Any | None:
    """None where the package is not installed."""
    if find_spec("transformers") is None:
        return None
    from transformers import LlamaForCausalLM

    folder = gguf_weights.converted(bundled(), MODEL_CACHE, quiet)
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).train(False)


def one_sequence(token_ids: list[int], start: int) -> ForwardBatch:
    """These tokens from position `start` on in blocks 0, 1, 2 …; logits of the last one."""
    end = start + len(token_ids)
    blocks = list(range(-(-end // BLOCK_SIZE)))
    return ForwardBatch(
        token_ids=torch.tensor(token_ids),
        positions=torch.arange(start, end),
        seqs=[SeqSlice(0, len(token_ids), end, blocks)],
        logit_rows=torch.tensor([len(token_ids) - 1]),
    )


def empty_pool(model: LlamaModel, num_tokens: int) -> torch.Tensor:
    return torch.zeros(-(-num_tokens // BLOCK_SIZE), *model.slab(BLOCK_SIZE).shape)
