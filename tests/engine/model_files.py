"""The tiny model as files, the way other programs write them. Knows nothing about how they are read."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

from engine.weights import interleave
from tests.engine.factories import byte_tokenizer, tiny_config, tiny_tensors

CONFIG = tiny_config()
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor that Hugging Face calls `name`."""
    stem = name.removesuffix(".weight")
    if not stem.startswith("model.layers."):
        return f"{GGUF_NAMES[stem]}.weight"
    _, _, index, rest = stem.split(".", 3)
    return f"blk.{index}.{GGUF_NAMES[rest]}.weight"


def write_folder(folder: Path, *, shards: int = 1, **changes: Any) -> Path:
    """The tiny model as a Hugging Face folder."""
    folder.mkdir()
    raw = {
        "model_type": "llama",
        "num_hidden_layers": CONFIG.num_layers,
        "hidden_size": CONFIG.hidden_size,
        "intermediate_size": CONFIG.intermediate_size,
        "num_attention_heads": CONFIG.num_heads,
        "num_key_value_heads": CONFIG.num_kv_heads,
        "vocab_size": CONFIG.vocab_size,
        "max_position_embeddings": CONFIG.max_position,
        "rope_theta": CONFIG.rope_base,
        "rms_norm_eps": CONFIG.rms_eps,
        "tie_word_embeddings": True,
        "eos_token_id": 256,
    }
    (folder / "config.json").write_text(json.dumps(raw | changes))
    byte_tokenizer()._backend.save(str(folder / "tokenizer.json"))
    write_tensors(folder, tiny_tensors(CONFIG), shards)
    return folder


def write_tensors(folder: Path, tensors: dict[str, torch.Tensor], shards: int) -> None:
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    places = {name: f"model-{number % shards}.safetensors" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    kind: str = "gpt2",
    pre: str = "default",
    extra: str = "",
    base: float = CONFIG.rope_base,
) -> Path:
    """The tiny model as llama.cpp would keep it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(CONFIG.num_layers)
    writer.add_context_length(CONFIG.max_position)
    writer.add_embedding_length(CONFIG.hidden_size)
    writer.add_feed_forward_length(CONFIG.intermediate_size)
    writer.add_head_count(CONFIG.num_heads)
    writer.add_head_count_kv(CONFIG.num_kv_heads)
    writer.add_rope_freq_base(base)
    writer.add_layer_norm_rms_eps(CONFIG.rms_eps)
    vocab = byte_tokenizer()._backend.get_vocab(with_added_tokens=True)
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(sorted(vocab, key=vocab.__getitem__))
    writer.add_token_types([1] * 256 + [3])
    writer.add_eos_token_id(256)
    for name, tensor in tiny_tensors(CONFIG).items():
        is_rotated = "q_proj" in name or "k_proj" in name
        weight = interleave(tensor, CONFIG.head_dim) if is_rotated else tensor
        writer.add_tensor(gguf_name(name), weight.numpy())
    if extra:
        writer.add_tensor(extra, np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
