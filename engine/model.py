"""A Llama-family model: a batch of tokens in, logits out, keys and values into a paged pool.

Knows nothing about requests, scheduling, sampling or where the blocks come from.
"""

import torch
from torch.nn.functional import rms_norm, silu

from engine.attention import PagedAttention
from engine.batch import ForwardBatch, SeqSlice
from engine.config import ModelConfig
from engine.rope import rotations
from engine.weights import LayerWeights, ModelWeights
from tiers import SlabSpec

__all__ = ["ForwardBatch", "LlamaModel", "SeqSlice"]


class LlamaModel:
    """The model on one device, fp32. `forward` keeps no state but the pool's: one thread at a time may call it."""

    dtype = torch.float32

    def __init__(self, config: ModelConfig, weights: ModelWeights) -> None:
        self.config = config
        self.device = weights.embed.device
        self._weights = weights
        self._rotations = rotations(config).to(self.device)

    def slab(self, block_size: int) -> SlabSpec:
        """One block's keys and values: [num_layers, 2, num_kv_heads, block_size, head_dim], contiguous."""
        config = self.config
        shape = (config.num_layers, 2, config.num_kv_heads, block_size, config.head_dim)
        return SlabSpec(num_bytes=torch.Size(shape).numel() * 4, dtype="float32", shape=shape)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
        """Logits fp32 [R, vocab_size] of the wanted rows; writes the batch's keys and values into `kv`.

        `kv` is the whole pool, fp32 [num_blocks, *slab shape], contiguous.
        """
        config, weights = self.config, self._weights
        attention = PagedAttention(batch, kv, config.num_heads // config.num_kv_heads)
        rotation = self._rotations[batch.positions][:, None]
        hidden = weights.embed[batch.token_ids]
        last = len(weights.layers) - 1
        for index, layer in enumerate(weights.layers):
            attended = self._attend(index, layer, hidden, rotation, attention)
            if index == last:
                # Nothing reads the other rows any more: 3 % of a prefill.
                hidden, attended = hidden[batch.logit_rows], attended[batch.logit_rows]
            layer.out.add_product(attended, hidden)
            _add_ffn(hidden, layer, config.rms_eps)
        normed = rms_norm(hidden, (config.hidden_size,), weights.norm, config.rms_eps)
        return weights.lm_head.times(normed)

    def _attend(
        self, index: int, layer: LayerWeights, hidden: torch.Tensor, rotation: torch.Tensor, attention: PagedAttention
    ) -> torch.Tensor:
        config = self.config
        heads = layer.qkv.times(_normed(hidden, config.rms_eps)).view(len(hidden), -1, config.head_dim)
        num_rotated = config.num_heads + config.num_kv_heads
        pairs = heads[:, :num_rotated].view(len(hidden), num_rotated, -1, 2)
        torch.view_as_complex(pairs).mul_(rotation)
        queries, keys_values = heads[:, : config.num_heads], heads[:, config.num_heads :]
        attention.write(index, keys_values)
        return attention.attend(index, queries)


def _add_ffn(hidden: torch.Tensor, layer: LayerWeights, eps: float) -> None:
    gate, up = layer.gate_up.times(_normed(hidden, eps)).chunk(2, dim=1)
    layer.down.add_product(silu(gate).mul_(up), hidden)


def _normed(hidden: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows divided by their root mean square; the norm's weights are in the matrix that comes next."""
    norms: torch.Tensor = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
    return hidden * norms.square_().div_(hidden.shape[1]).add_(eps).rsqrt_()
