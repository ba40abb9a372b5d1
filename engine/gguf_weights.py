"""Turns a GGUF file of the Llama family into a Hugging Face folder, once, so that later starts only map it.

Knows nothing about devices or the engine. Nothing in it unpickles.
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file

from engine import gguf_tokenizer
from engine.checkpoint import Progress, fingerprint
from engine.weights import deinterleave
from engine.weights_error import WeightsError

# Goes up when the same file would be converted to something else: what older versions left is then not found.
_VERSION = 1
# What tempfile makes of the prefix gguf-; whole folders have longer names.
_TEMPORARY = "gguf-????????"
_TENSOR_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def folder_of(path: Path, cache_dir: Path) -> Path:
    """Where the file's contents are, or would be."""
    return cache_dir / f"gguf-{fingerprint(path)}-{_VERSION}"


def converted(path: Path, cache_dir: Path, progress: Progress) -> Path:
    """The folder that holds the file's contents, made where it is missing or damaged. Raises WeightsError.

    What conversions that were killed have left is removed; one that runs elsewhere is waited for where it is needed.
    """
    progress("Hashing the weights", 0.0)
    folder = folder_of(path, cache_dir)
    with suppress(OSError), _only_conversion(cache_dir, None):
        for leftover in cache_dir.glob(_TEMPORARY):
            shutil.rmtree(leftover, ignore_errors=True)
    if not is_whole(folder):
        with _only_conversion(cache_dir, progress):
            if not is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _convert(path, folder, progress)
    return folder


@contextmanager
def _only_conversion(cache_dir: Path, progress: Progress | None) -> Iterator[None]:
    """A lock on the folder that ends with its process. Without `progress` BlockingIOError says that another has it."""
    cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(cache_dir, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is None:
                raise
            progress("Waiting for another conversion", 0.02)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_whole(folder: Path) -> bool:
    """True where every file is what was written: a conversion ends by writing the others' fingerprint."""
    files = sorted(path for path in folder.glob("*") if path.name != "fingerprint")
    try:
        return (folder / "fingerprint").read_text("ascii") == fingerprint(*files)
    except (OSError, ValueError):
        return False


def _convert(path: Path, folder: Path, progress: Progress) -> None:
    progress("Reading the GGUF file", 0.05)
    reader, fields = _open(path)
    config = _config(fields)
    # Made beside its place and renamed, so that a folder of that name is whole.
    with tempfile.TemporaryDirectory(prefix="gguf-", dir=folder.parent) as made:
        target = Path(made) / "whole"
        target.mkdir(mode=0o700)
        _write_tensors(reader, config, target, progress)
        _write_texts(fields, config, target)
        (target / "fingerprint").write_text(fingerprint(*sorted(target.glob("*"))), "ascii")
        for file in target.iterdir():
            file.chmod(0o600)
        os.rename(target, folder)


def _open(path: Path) -> tuple[GGUFReader, dict[str, Any]]:
    try:
        reader = GGUFReader(path)
        return reader, {name: field.contents() for name, field in reader.fields.items()}
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise WeightsError(f"{path} is not a whole GGUF file: {error}") from error


def write_texts(path: Path, target: Path) -> None:
    """Only the tokenizer and what belongs to it, of any architecture. Raises WeightsError."""
    _write_texts(_open(path)[1], {}, target)


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    """config.json as Hugging Face has it. Raises WeightsError for what is not Llama or lacks a value."""
    architecture = fields.get("general.architecture")
    if architecture != "llama":
        raise WeightsError(f"The GGUF file holds a model of architecture {architecture!r}; expected 'llama'.")
    try:
        num_heads = fields["llama.attention.head_count"]
        hidden_size = fields["llama.embedding_length"]
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_act": "silu",
            "num_hidden_layers": fields["llama.block_count"],
            "hidden_size": hidden_size,
            "intermediate_size": fields["llama.feed_forward_length"],
            "num_attention_heads": num_heads,
            "num_key_value_heads": fields.get("llama.attention.head_count_kv", num_heads),
            "head_dim": fields.get("llama.attention.key_length", hidden_size // num_heads),
            "vocab_size": len(fields["tokenizer.ggml.tokens"]),
            "max_position_embeddings": fields["llama.context_length"],
            "rope_theta": float(fields.get("llama.rope.freq_base", 10_000.0)),
            "rms_norm_eps": float(fields["llama.attention.layer_norm_rms_epsilon"]),
        }
    except KeyError as error:
        raise WeightsError(f"The GGUF file lacks the value {error.args[0]}.") from error


def _write_tensors(reader: GGUFReader, config: dict[str, Any], target: Path, progress: Progress) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for number, tensor in enumerate(reader.tensors):
        name = _hugging_face_name(tensor.name)
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            weight = deinterleave(weight, config["head_dim"])
        tensors[name] = weight.contiguous()
        progress("Unpacking the weights", 0.1 + 0.7 * number / len(reader.tensors))
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    progress("Keeping the unpacked weights for the next start", 0.8)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


def _hugging_face_name(name: str) -> str:
    parts = name.removesuffix(".weight").split(".")
    if name.endswith(".weight") and parts[0] in _OUTER_NAMES and len(parts) == 1:
        return f"{_OUTER_NAMES[parts[0]]}.weight"
    if name.endswith(".weight") and parts[0] == "blk" and len(parts) == 3 and parts[2] in _TENSOR_NAMES:
        return f"model.layers.{parts[1]}.{_TENSOR_NAMES[parts[2]]}.weight"
    raise WeightsError(f"The GGUF file has the tensor {name}, which a plain Llama model does not use; not supported.")


def _write_texts(fields: dict[str, Any], config: dict[str, Any], target: Path) -> None:
    gguf_tokenizer.build(fields).save(str(target / "tokenizer.json"))
    tokens = fields["tokenizer.ggml.tokens"]
    named = {
        f"{name}_token": tokens[fields[f"tokenizer.ggml.{name}_token_id"]]
        for name in ("bos", "eos")
        if f"tokenizer.ggml.{name}_token_id" in fields
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **named}
    if template := fields.get("tokenizer.chat_template"):
        settings["chat_template"] = template
    _write_json(target / "tokenizer_config.json", settings)
    _write_json(target / "generation_config.json", {"eos_token_id": gguf_tokenizer.end_ids(fields)})
    _write_json(target / "config.json", config)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
