"""Logits are those of the `transformers` package on the same weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from engine import gguf_weights
from engine.config import ModelConfig, RopeScaling
from engine.loader import LoadedModel, bundled
from engine.model import LlamaModel
from engine.weights import fuse
from tests.engine.factories import empty_kv, one_sequence, tiny_config, tiny_tensors
from tests.model_cache import MODEL_CACHE

if TYPE_CHECKING:  # importing it takes 4 s, and every process that runs tests reads this file
    from transformers import LlamaConfig, LlamaForCausalLM

TEXT = "The sea was calm that morning, and 1234 gulls sat on the old pier as if they were waiting for someone. " * 3
VARIANTS = {
    "tied": tiny_config(),
    "untied": tiny_config(tie_embeddings=False),
    "one key head": tiny_config(num_kv_heads=1),
    "a key head each": tiny_config(num_kv_heads=4),
    "wide heads": tiny_config(head_dim=16),
    "llama3 scaling": tiny_config(rope_scaling=RopeScaling(8.0, 1.0, 4.0, 64)),
}


def reference_config(config: ModelConfig) -> "LlamaConfig":
    from transformers import LlamaConfig

    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    if scaling := config.rope_scaling:
        rope |= {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_position,
        }
    return LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.max_position,
        rms_norm_eps=config.rms_eps,
        tie_word_embeddings=config.tie_embeddings,
        rope_parameters=rope,
    )


@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_tiny_models_of_every_shape_match(name: str) -> None:
    from transformers import LlamaForCausalLM

    config = VARIANTS[name]
    tensors = tiny_tensors(config)
    reference = LlamaForCausalLM(reference_config(config)).train(False)
    reference.load_state_dict(tensors, strict=False)
    reference.tie_weights()
    token_ids = [(7 * n * n + n) % 256 for n in range(100)]
    model = LlamaModel(config, fuse(config, tensors, torch.device("cpu")))
    ours = model.forward(one_sequence(token_ids, 0, list(range(25))), empty_kv(model, 25))
    torch.testing.assert_close(ours, reference(torch.tensor([token_ids])).logits[0], rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def reference(real_model: LoadedModel) -> "LlamaForCausalLM":
    from transformers import LlamaForCausalLM

    folder: Path = gguf_weights.converted(bundled(), MODEL_CACHE, lambda text, share: None)
    loaded: LlamaForCausalLM = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return loaded


@torch.inference_mode()
def test_the_real_models_logits_match_within_a_thousandth(
    real_model: LoadedModel, reference: "LlamaForCausalLM"
) -> None:
    token_ids = real_model.tokenizer.encode(TEXT)
    model = real_model.model
    kv = empty_kv(model, len(token_ids) // 16 + 1, block_size=16)
    blocks = list(range(len(kv)))
    chunks = [(0, 30), (30, 31), (31, len(token_ids))]
    ours = torch.cat([model.forward(one_sequence(token_ids[a:b], a, blocks), kv) for a, b in chunks])
    theirs = reference(torch.tensor([token_ids])).logits[0]
    assert (ours - theirs).abs().max() < 1e-3


@torch.inference_mode()
def test_the_real_models_greedy_text_matches(real_model: LoadedModel, reference: "LlamaForCausalLM") -> None:
    prompt = real_model.tokenizer.encode("Once upon a time, in a small village by the sea,")
    expected = reference.generate(
        torch.tensor([prompt]), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0
    )[0, len(prompt) :].tolist()
    kv = empty_kv(real_model.model, 4, block_size=16)
    tokens = list(prompt)
    start = 0
    while len(tokens) < len(prompt) + 24:
        logits = real_model.model.forward(one_sequence(tokens[start:], start, [2, 0, 3, 1], rows=[-1]), kv)
        start = len(tokens)
        tokens.append(int(logits.argmax()))
    assert tokens[len(prompt) :] == expected
