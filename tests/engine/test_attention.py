"""The fast path is the plain formula, for any cut of sequences into blocks, slots and steps."""

import math
from dataclasses import dataclass

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.attention import PagedAttention
from engine.batch import ForwardBatch, SeqSlice

LAYERS, KV_HEADS, GROUP, BLOCK_SIZE, HEAD_DIM = 2, 2, 3, 4, 8


@dataclass(frozen=True)
class Case:
    """(context_len, query_len) of each sequence, and an order of the pool's slots."""

    lengths: list[tuple[int, int]]
    slots: list[int]
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    contexts = draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    lengths = [(context, draw(st.one_of(st.just(1), st.integers(1, context)))) for context in contexts]
    return Case(lengths, draw(st.permutations(range(40))), draw(st.integers(0, 1000)))


def batch_of(case: Case) -> ForwardBatch:
    slots, seqs, start = iter(case.slots), [], 0
    positions: list[int] = []
    for context, query in case.lengths:
        # One block more than needed, as a lease may own it.
        seqs.append(SeqSlice(start, query, context, [next(slots) for _ in range(context // BLOCK_SIZE + 1)]))
        positions += range(context - query, context)
        start += query
    return ForwardBatch(torch.zeros(start, dtype=torch.int64), torch.tensor(positions), seqs, torch.tensor([0]))


def plain(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T / sqrt(d)) v, query by query and head by head; queries are the last of the keys' tokens."""
    out = torch.empty_like(queries)
    first = len(keys) - len(queries)
    for row in range(len(queries)):
        for head in range(queries.shape[1]):
            seen = slice(0, first + row + 1)
            scores = keys[seen, head // GROUP] @ queries[row, head] / math.sqrt(HEAD_DIM)
            out[row, head] = scores.softmax(0) @ values[seen, head // GROUP]
    return out.flatten(1)


@given(cases(), st.integers(0, LAYERS - 1))
def test_attention_over_blocks_is_the_plain_formula(case: Case, layer: int) -> None:
    generator = torch.Generator().manual_seed(case.seed)
    batch = batch_of(case)
    kv = torch.full((40, LAYERS, 2, KV_HEADS, BLOCK_SIZE, HEAD_DIM), float("nan"))
    queries = torch.randn(len(batch.positions), KV_HEADS * GROUP, HEAD_DIM, generator=generator)
    attention = PagedAttention(batch, kv, GROUP)
    expected = []
    new = torch.empty(len(batch.positions), 2, KV_HEADS, HEAD_DIM)
    for seq in batch.seqs:
        whole = torch.randn(seq.context_len, 2, KV_HEADS, HEAD_DIM, generator=generator)
        rows = slice(seq.query_start, seq.query_start + seq.query_len)
        new[rows] = whole[seq.context_len - seq.query_len :]
        for position in range(seq.context_len - seq.query_len):
            block, offset = seq.block_ids[position // BLOCK_SIZE], position % BLOCK_SIZE
            kv[block, layer, :, :, offset] = whole[position]
        expected.append(plain(queries[rows], whole[:, 0], whole[:, 1]))
    attention.write(layer, new)
    torch.testing.assert_close(attention.attend(layer, queries), torch.cat(expected), rtol=1e-4, atol=1e-5)


@given(cases(), st.integers(0, LAYERS - 1))
def test_writing_changes_the_new_tokens_of_one_layer_and_nothing_else(case: Case, layer: int) -> None:
    batch = batch_of(case)
    kv = torch.zeros(40, LAYERS, 2, KV_HEADS, BLOCK_SIZE, HEAD_DIM)
    PagedAttention(batch, kv, GROUP).write(layer, torch.ones(len(batch.positions), 2, KV_HEADS, HEAD_DIM))
    written = kv.sum(dim=(2, 3, 5)) / (2 * KV_HEADS * HEAD_DIM)
    expected = torch.zeros(40, LAYERS, BLOCK_SIZE)
    for seq in batch.seqs:
        for position in range(seq.context_len - seq.query_len, seq.context_len):
            expected[seq.block_ids[position // BLOCK_SIZE], layer, position % BLOCK_SIZE] = 1
    assert torch.equal(written, expected)
