"""Reads a Hugging Face folder of the Llama family: config.json, safetensors (sharded or not), tokenizer.json.

Knows nothing about GGUF or devices. Nothing in it unpickles.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.checkpoint import Checkpoint, Progress, fingerprint
from engine.config import ModelConfig, RopeScaling
from engine.hf_texts import chat_template_of, json_of, optional_json
from engine.tokenizer import Tokenizer
from engine.weights import check_tensors
from engine.weights_error import WeightsError


def read(folder: Path, progress: Progress) -> Checkpoint:
    """The folder's checkpoint; tensors are mapped, not copied. Raises WeightsError with one sentence."""
    raw = json_of(folder / "config.json")
    files = _weight_files(folder)
    progress("Hashing the weights", 0.0)
    config = parse_config(raw, fingerprint(folder / "config.json", *files))
    progress("Mapping the weights", 0.3)
    tensors: dict[str, torch.Tensor] = {}
    for path in files:
        tensors |= _load(path)
    check_tensors(config, tensors)
    settings = optional_json(folder / "tokenizer_config.json")
    return Checkpoint(
        config=config,
        tensors=tensors,
        tokenizer=_tokenizer(folder / "tokenizer.json", config),
        chat_template=chat_template_of(folder, settings),
        eos_ids=_eos_ids(raw, optional_json(folder / "generation_config.json")),
    )


def parse_config(raw: dict[str, Any], weights_fingerprint: str) -> ModelConfig:
    """A config.json's values. Raises WeightsError for what this engine does not compute."""
    if raw.get("model_type") != "llama":
        raise WeightsError(f"config.json has model_type {raw.get('model_type')!r}; expected 'llama'.")
    for name, expected in {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu"}.items():
        if raw.get(name, expected) != expected:
            raise WeightsError(f"config.json has {name} {raw[name]!r}; only {expected!r} is supported.")
    try:
        rope = raw.get("rope_parameters") or {}
        return ModelConfig(
            num_layers=int(raw["num_hidden_layers"]),
            hidden_size=int(raw["hidden_size"]),
            intermediate_size=int(raw["intermediate_size"]),
            num_heads=int(raw["num_attention_heads"]),
            num_kv_heads=int(raw.get("num_key_value_heads") or raw["num_attention_heads"]),
            head_dim=int(raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]),
            vocab_size=int(raw["vocab_size"]),
            max_position=int(raw["max_position_embeddings"]),
            rope_base=float(rope.get("rope_theta") or raw.get("rope_theta") or 10_000.0),
            rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
            tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
            fingerprint=weights_fingerprint,
            rope_scaling=_rope_scaling(raw.get("rope_scaling") or rope),
        )
    except KeyError as error:
        raise WeightsError(f"config.json lacks {error.args[0]}.") from error
    except (TypeError, ValueError) as error:
        raise WeightsError(f"config.json is not usable: {error}") from error


def _rope_scaling(raw: dict[str, Any]) -> RopeScaling | None:
    kind = raw.get("rope_type", raw.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise WeightsError(f"config.json asks for RoPE scaling {kind!r}; supported are none and 'llama3'.")
    return RopeScaling(
        factor=float(raw["factor"]),
        low_freq_factor=float(raw["low_freq_factor"]),
        high_freq_factor=float(raw["high_freq_factor"]),
        original_max_position=int(raw["original_max_position_embeddings"]),
    )


def _weight_files(folder: Path) -> list[Path]:
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        raise WeightsError(f"{folder} has neither model.safetensors nor model.safetensors.index.json.")
    names = sorted(set(json_of(index).get("weight_map", {}).values()))
    strangers = [name for name in names if name != Path(name).name or not (folder / name).is_file()]
    if strangers or not names:
        raise WeightsError(f"{index} names weight files that are not in the folder: {', '.join(strangers) or 'none'}.")
    return [folder / name for name in names]


def _load(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path} is not a whole safetensors file: {error}") from error


def _tokenizer(path: Path, config: ModelConfig) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(path)
    except ValueError as error:
        raise WeightsError(str(error)) from error
    if tokenizer.vocab_size > config.vocab_size:
        raise WeightsError(f"{path} has {tokenizer.vocab_size} tokens, the model only {config.vocab_size}.")
    return tokenizer


def _eos_ids(config: dict[str, Any], generation: dict[str, Any]) -> frozenset[int]:
    ids = generation.get("eos_token_id", config.get("eos_token_id"))
    return frozenset() if ids is None else frozenset([ids] if isinstance(ids, int) else ids)
