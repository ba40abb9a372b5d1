"""What one forward pass is about: tokens laid end to end, and whose they are. Knows nothing about the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class SeqSlice:
    """One sequence's share of a batch.

    Tokens `query_start .. query_start + query_len` of the batch are its last `query_len` of `context_len` tokens.
    `block_ids` are pool slots in prefix order and hold at least `context_len` tokens.
    """

    query_start: int
    query_len: int
    context_len: int
    block_ids: Sequence[int]


@dataclass(frozen=True)
class ForwardBatch:
    """`token_ids` and `positions` int64 [T]; `logit_rows` int64 [R], the rows whose logits are wanted, ascending."""

    token_ids: torch.Tensor
    positions: torch.Tensor
    seqs: list[SeqSlice]
    logit_rows: torch.Tensor
