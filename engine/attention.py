"""Attention over paged keys and values: the one place that depends on how the hardware likes it.

A pool tensor is [num_blocks, num_layers, 2, num_kv_heads, block_size, head_dim]: a block is one contiguous slab.
Knows nothing about weights, rotary angles or requests.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.batch import ForwardBatch, SeqSlice


class PagedAttention:
    """A batch's attention, planned once and used by every layer. Raises ValueError where block ids do not suffice.

    `num_shared` query heads read each key head.
    """

    def __init__(self, batch: ForwardBatch, kv: torch.Tensor, num_shared: int) -> None:
        num_blocks, num_layers, _, num_heads, block_size, head_dim = kv.shape
        self._rows_per_layer = 2 * num_heads
        self._tokens_per_layer = 2 * num_heads * block_size
        # Two flat views of the pool: one row a head's share of a block, one row a head's token.
        self._by_block = kv.view(num_blocks * num_layers * self._rows_per_layer, block_size * head_dim)
        self._by_token = kv.view(num_blocks * num_layers * self._tokens_per_layer, head_dim)
        self._seqs = [_PlannedSeq(seq, kv, num_shared) for seq in batch.seqs]
        self._written = _written_rows(batch, kv)

    def write(self, layer: int, keys_values: torch.Tensor) -> None:
        """Put the batch's keys and values [T, 2, num_kv_heads, head_dim] where they belong in the pool."""
        rows = self._by_token[layer * self._tokens_per_layer :]
        rows.index_copy_(0, self._written, keys_values.reshape(-1, rows.shape[1]))

    def attend(self, layer: int, queries: torch.Tensor) -> torch.Tensor:
        """Queries [T, num_heads, head_dim] against what is at and before them; returns [T, num_heads * head_dim]."""
        rows = self._by_block[layer * self._rows_per_layer :]
        outputs = [seq.attend(queries[seq.queries], rows) for seq in self._seqs]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


class _PlannedSeq:
    """Which rows of the pool one sequence reads, and what each of its queries may see."""

    def __init__(self, seq: SeqSlice, kv: torch.Tensor, num_shared: int) -> None:
        _, num_layers, _, num_heads, block_size, head_dim = kv.shape
        num_used = -(-seq.context_len // block_size)
        if len(seq.block_ids) < num_used or not 0 < seq.query_len <= seq.context_len:
            raise ValueError(
                f"{len(seq.block_ids)} blocks of {block_size} tokens cannot hold a context of {seq.context_len} "
                f"with {seq.query_len} new tokens."
            )
        self.queries = slice(seq.query_start, seq.query_start + seq.query_len)
        self._context_len = seq.context_len
        self._shape = (2, num_heads, num_used * block_size, head_dim)
        heads = torch.arange(2 * num_heads, device=kv.device)
        blocks = torch.tensor(seq.block_ids[:num_used], device=kv.device) * (num_layers * 2 * num_heads)
        self._rows = (heads[:, None] + blocks).flatten()
        self._is_causal = seq.query_len == seq.context_len > 1
        self._mask = None if self._is_causal or seq.query_len == 1 else _mask(seq, kv).repeat(num_shared, 1)

    def attend(self, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        keys, values = rows.index_select(0, self._rows).view(self._shape)[:, None, :, : self._context_len]
        if self._is_causal:
            heads = queries.transpose(0, 1)[None]
            attended = scaled_dot_product_attention(heads, keys, values, is_causal=True, enable_gqa=True)
            return attended[0].transpose(0, 1).flatten(1)
        # The query heads that share a key head are rows against it: keys are read once, not once a query head.
        num_kv_heads, head_dim = self._shape[1], self._shape[3]
        shared = queries.view(len(queries), num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)
        attended = scaled_dot_product_attention(
            shared.reshape(1, num_kv_heads, -1, head_dim), keys, values, attn_mask=self._mask
        )
        return attended.view(shared.shape).permute(2, 0, 1, 3).reshape(len(queries), -1)


def _written_rows(batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
    """Rows of layer 0's tokens, [T * 2 * num_kv_heads], that the batch's keys and values go to."""
    _, num_layers, _, num_heads, block_size, _ = kv.shape
    blocks = [
        seq.block_ids[position // block_size]
        for seq in batch.seqs
        for position in range(seq.context_len - seq.query_len, seq.context_len)
    ]
    starts = torch.tensor(blocks, device=kv.device) * (num_layers * 2 * num_heads * block_size)
    heads = torch.arange(2 * num_heads, device=kv.device) * block_size
    return ((starts + batch.positions % block_size)[:, None] + heads).flatten()


def _mask(seq: SeqSlice, kv: torch.Tensor) -> torch.Tensor:
    """What is added to the scores [query_len, context_len]: 0 where a query may look, -inf at what comes after it."""
    shape = (seq.query_len, seq.context_len)
    mask = torch.full(shape, float("-inf"), dtype=kv.dtype, device=kv.device)
    return mask.triu(seq.context_len - seq.query_len + 1)
