"""The logits that the tiny model gives for a few tokens, from files or from memory. Knows nothing about formats."""

from pathlib import Path

import torch

from engine.loader import load
from engine.model import LlamaModel
from tests.engine.factories import empty_kv, one_sequence

CPU = torch.device("cpu")
TOKENS = list(b"a small test")


def quiet(text: str, share: float) -> None:
    """Progress that nobody watches."""


def logits_of(path: Path, cache_dir: Path) -> torch.Tensor:
    return logits_of_model(load(path, cache_dir=cache_dir, device=CPU, progress=quiet).model)


def logits_of_model(model: LlamaModel) -> torch.Tensor:
    return model.forward(one_sequence(TOKENS, 0, [0, 1, 2]), empty_kv(model, 3))
