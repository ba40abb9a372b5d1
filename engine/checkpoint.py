"""What a model's files hold, whatever their format. Knows nothing about devices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import xxhash

from engine.chat_template import ChatTemplate
from engine.config import ModelConfig
from engine.tokenizer import Tokenizer

# (what is being done, share of the whole that is done: 0..1)
Progress = Callable[[str, float], None]
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class Checkpoint:
    """`tensors` under Hugging Face's names and in its order; `chat_template` None where the model has none."""

    config: ModelConfig
    tensors: Mapping[str, torch.Tensor]
    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    eos_ids: frozenset[int]


def fingerprint(*paths: Path) -> str:
    """32 hex digits of the files' names and bytes, in the given order: other weights give other blocks."""
    digest = xxhash.xxh3_128()
    for path in paths:
        digest.update(path.name.encode())
        digest.update(path.stat().st_size.to_bytes(8, "little"))
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
