"""The runner over a real model: a step's chunks become one batch, its logits become tokens.

Knows nothing about requests beyond their tokens and sampling, or about where blocks come from.
"""

from collections.abc import Callable, Sequence

import torch

from engine.model import ForwardBatch, LlamaModel, SeqSlice
from engine.sampling import sample
from engine.scheduler import Chunk


class ModelRunner:
    """A runner over a real model. `kv` gives the pool's tensor, which may be another one after a resize."""

    def __init__(self, model: LlamaModel, kv: Callable[[], torch.Tensor]) -> None:
        self._model = model
        self._kv = kv

    @torch.inference_mode()
    def run(self, chunks: Sequence[Chunk]) -> list[int]:
        logits = self._model.forward(batch_of(chunks, self._model.device), self._kv())
        sampled = [chunk.sequence for chunk in chunks if chunk.is_last]
        if not sampled:
            return []
        return sample(logits, [s.request.sampling for s in sampled], [s.sampling_state for s in sampled])


def batch_of(chunks: Sequence[Chunk], device: torch.device) -> ForwardBatch:
    """The chunks laid end to end: token ids and positions [T], and the rows whose logits are wanted."""
    token_ids: list[int] = []
    positions: list[int] = []
    seqs: list[SeqSlice] = []
    logit_rows: list[int] = []
    for chunk in chunks:
        end = chunk.start + chunk.length
        seqs.append(SeqSlice(len(token_ids), chunk.length, end, chunk.block_ids))
        token_ids += chunk.sequence.token_ids[chunk.start : end]
        positions += range(chunk.start, end)
        if chunk.is_last:
            logit_rows.append(len(token_ids) - 1)
    return ForwardBatch(
        token_ids=torch.tensor(token_ids, dtype=torch.int64, device=device),
        positions=torch.tensor(positions, dtype=torch.int64, device=device),
        seqs=seqs,
        logit_rows=torch.tensor(logit_rows, dtype=torch.int64, device=device),
    )
