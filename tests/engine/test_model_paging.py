"""How a sequence is cut into steps, batches and blocks does not change what the model says."""

import random

import pytest
import torch

from engine.model import ForwardBatch, LlamaModel, SeqSlice
from tests.engine.factories import empty_kv, one_sequence, tiny_llama

BLOCK_SIZE = 4


@pytest.fixture(scope="module")
def model() -> LlamaModel:
    return tiny_llama()


def tokens(count: int, seed: int = 1) -> list[int]:
    return random.Random(seed).choices(range(256), k=count)


def at_once(model: LlamaModel, token_ids: list[int]) -> torch.Tensor:
    num_blocks = -(-len(token_ids) // BLOCK_SIZE)
    return model.forward(one_sequence(token_ids, 0, list(range(num_blocks))), empty_kv(model, num_blocks))


@pytest.mark.parametrize("cuts", [[1], [4], [7, 8], [3, 4, 5, 22], list(range(1, 23))])
def test_a_prompt_in_chunks_gives_the_logits_of_a_prompt_at_once(model: LlamaModel, cuts: list[int]) -> None:
    token_ids = tokens(23)
    kv, blocks = empty_kv(model, 6), [5, 0, 3, 1, 4, 2]
    chunks = zip([0, *cuts], [*cuts, len(token_ids)], strict=True)
    logits = [model.forward(one_sequence(token_ids[start:end], start, blocks), kv) for start, end in chunks]
    torch.testing.assert_close(torch.cat(logits), at_once(model, token_ids), rtol=1e-4, atol=1e-4)


def test_sequences_in_one_batch_give_what_each_gives_alone(model: LlamaModel) -> None:
    kv = empty_kv(model, 12)
    context = {0: tokens(9, 2), 1: tokens(17, 3), 2: tokens(6, 4)}
    blocks = {0: [11, 0, 7], 1: [1, 9, 2, 8, 3], 2: [10, 4]}
    model.forward(one_sequence(context[0][:8], 0, blocks[0]), kv)
    model.forward(one_sequence(context[1][:10], 0, blocks[1]), kv)
    batch = ForwardBatch(
        token_ids=torch.tensor([*context[0][8:], *context[1][10:], *context[2]]),
        positions=torch.tensor([8, *range(10, 17), *range(6)]),
        seqs=[SeqSlice(0, 1, 9, blocks[0]), SeqSlice(1, 7, 17, blocks[1]), SeqSlice(8, 6, 6, blocks[2])],
        logit_rows=torch.tensor([0, 7, 13]),
    )
    alone = torch.stack([at_once(model, context[number])[-1] for number in range(3)])
    torch.testing.assert_close(model.forward(batch, kv), alone, rtol=1e-4, atol=1e-4)


def test_only_the_wanted_rows_have_logits(model: LlamaModel) -> None:
    token_ids = tokens(8)
    wanted = model.forward(one_sequence(token_ids, 0, [0, 1], rows=[2, 7]), empty_kv(model, 2))
    torch.testing.assert_close(wanted, at_once(model, token_ids)[[2, 7]], rtol=1e-4, atol=1e-4)
    none = model.forward(one_sequence(token_ids, 0, [0, 1], rows=[]), empty_kv(model, 2))
    assert none.shape == (0, 257)


def test_a_step_touches_no_block_but_its_own(model: LlamaModel) -> None:
    kv = empty_kv(model, 5)
    model.forward(one_sequence(tokens(6), 0, [3, 1]), kv)
    assert kv[[0, 2, 4]].isnan().all()
    assert kv[3].isfinite().all()
    assert kv[1, :, :, :, 2:].isnan().all()


def test_a_block_moved_to_another_slot_is_as_good(model: LlamaModel) -> None:
    token_ids = tokens(9)
    kv = empty_kv(model, 6)
    model.forward(one_sequence(token_ids[:8], 0, [0, 1]), kv)
    kv[[5, 4]] = kv[[0, 1]].clone()
    kv[[0, 1]] = float("nan")
    logits = model.forward(one_sequence(token_ids[8:], 8, [5, 4, 2]), kv)
    torch.testing.assert_close(logits[0], at_once(model, token_ids)[-1], rtol=1e-4, atol=1e-4)


def test_too_few_blocks_are_refused(model: LlamaModel) -> None:
    with pytest.raises(ValueError, match="1 blocks of 4 tokens cannot hold a context of 5"):
        model.forward(one_sequence(tokens(5), 0, [0]), empty_kv(model, 1))
