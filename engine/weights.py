"""A checkpoint's tensors, checked and fused into the few large matrices that a step multiplies with.

Takes tensors under Hugging Face's names and in its order. Knows nothing about files.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.config import ModelConfig
from engine.matrix import Matrix
from engine.weights_error import WeightsError


@dataclass(frozen=True)
class LayerWeights:
    """One decoder layer, fp32. Matrices are [in, out]: one row times such a matrix is up to twice as fast on a CPU.

    Query and key columns are in interleaved rotary order. `qkv` and `gate_up` contain the weights of the norm before
    them, which then is a plain division by the root mean square: half the time of `rms_norm` on a CPU.
    """

    qkv: Matrix
    out: Matrix
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True)
class ModelWeights:
    """`embed` is [vocab_size, hidden_size], `lm_head` [hidden_size, vocab_size]; tied ones share memory."""

    embed: torch.Tensor
    layers: tuple[LayerWeights, ...]
    norm: torch.Tensor
    lm_head: Matrix


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model needs, by Hugging Face's name."""
    hidden, ffn, vocab = config.hidden_size, config.intermediate_size, config.vocab_size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not config.tie_embeddings:
        shapes["lm_head.weight"] = (vocab, hidden)
    for index in range(config.num_layers):
        shapes |= {
            f"model.layers.{index}.{name}.weight": shape
            for name, shape in {
                "input_layernorm": (hidden,),
                "self_attn.q_proj": (config.q_size, hidden),
                "self_attn.k_proj": (config.kv_size, hidden),
                "self_attn.v_proj": (config.kv_size, hidden),
                "self_attn.o_proj": (hidden, config.q_size),
                "post_attention_layernorm": (hidden,),
                "mlp.gate_proj": (ffn, hidden),
                "mlp.up_proj": (ffn, hidden),
                "mlp.down_proj": (hidden, ffn),
            }.items()
        }
    return shapes


def check_tensors(config: ModelConfig, tensors: Mapping[str, torch.Tensor]) -> None:
    """Raises WeightsError unless exactly the needed tensors are there, in the needed shapes."""
    shapes = tensor_shapes(config)
    for name, shape in shapes.items():
        if name not in tensors:
            raise WeightsError(f"The weights lack the tensor {name}; {len(shapes)} tensors are expected.")
        if tuple(tensors[name].shape) != shape:
            raise WeightsError(f"The tensor {name} has shape {tuple(tensors[name].shape)}; expected {shape}.")
    tied = {"lm_head.weight"} if config.tie_embeddings else set()
    surplus = sorted(name for name in tensors.keys() - shapes.keys() - tied if not name.endswith("rotary_emb.inv_freq"))
    if surplus:
        raise WeightsError(
            f"The weights have the tensor {surplus[0]}, which the model that config.json describes does "
            "not use; biases and other additions to Llama are not supported."
        )


def fuse(config: ModelConfig, tensors: Mapping[str, torch.Tensor], device: torch.device) -> ModelWeights:
    """The checkpoint's tensors as the model multiplies with them, on `device`. Raises WeightsError."""
    check_tensors(config, tensors)

    def get(name: str) -> torch.Tensor:
        return tensors[f"{name}.weight"].to(device=device, dtype=torch.float32)

    embed = get("model.embed_tokens")
    return ModelWeights(
        embed=embed,
        layers=tuple(
            LayerWeights(
                qkv=_fused(
                    interleave(get(f"{layer}.self_attn.q_proj"), config.head_dim),
                    interleave(get(f"{layer}.self_attn.k_proj"), config.head_dim),
                    get(f"{layer}.self_attn.v_proj"),
                    norm=get(f"{layer}.input_layernorm"),
                ),
                out=_fused(get(f"{layer}.self_attn.o_proj")),
                gate_up=_fused(
                    get(f"{layer}.mlp.gate_proj"),
                    get(f"{layer}.mlp.up_proj"),
                    norm=get(f"{layer}.post_attention_layernorm"),
                ),
                down=_fused(get(f"{layer}.mlp.down_proj")),
            )
            for layer in (f"model.layers.{index}" for index in range(config.num_layers))
        ),
        norm=get("model.norm"),
        lm_head=Matrix((embed if config.tie_embeddings else get("lm_head")).t()),
    )


def _fused(*matrices: torch.Tensor, norm: torch.Tensor | None = None) -> Matrix:
    """Matrices [out, in] side by side as one [in, sum of outs], rows scaled by the norm's weights [in] before it."""
    fused = torch.cat(matrices).t().contiguous()
    return Matrix(fused if norm is None else fused.mul_(norm[:, None]))


def interleave(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Rows [heads * head_dim, in] from halves (0..d/2, d/2..d) to pairs (0, d/2, 1, d/2+1, …) within each head.

    A rotary pair then lies side by side and is one complex number: one multiplication instead of six passes.
    """
    halves = weight.reshape(-1, 2, head_dim // 2, weight.shape[1])
    return halves.transpose(1, 2).reshape(weight.shape)


def deinterleave(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """The inverse of `interleave`."""
    pairs = weight.reshape(-1, head_dim // 2, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)
