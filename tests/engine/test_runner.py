"""From chunks to the model's batch, and the sizes that a machine starts with."""

import pytest
import torch

from engine.build import resolve_device
from engine.defaults import GPU_BLOCKS, default_tier_sizes
from engine.engine_config import EngineConfig
from engine.model_runner import batch_of
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from engine.scheduler import Chunk
from engine.sequence import Sequence
from tests.engine.harness import SLAB
from tiers import SlabSpec, Tier, TierConfig
from tiers.block_format import stored_bytes

TIERS = (TierConfig(Tier.GPU, SLAB.num_bytes * 8),)


def sequence(token_ids: list[int]) -> Sequence:
    request = GenerationRequest("a", token_ids, SamplingParams(max_tokens=4))
    return Sequence(request, root=b"root", block_size=4, max_model_len=64, on_event=lambda event: None, now=0.0)


def test_chunks_are_laid_end_to_end_and_only_last_ones_ask_for_logits() -> None:
    first, second, third = sequence([10, 11, 12]), sequence(list(range(20, 30))), sequence([30])
    batch = batch_of(
        [
            Chunk(first, 2, 1, [5], is_last=True),
            Chunk(second, 4, 4, [1, 2, 3], is_last=False),
            Chunk(third, 0, 1, [7], is_last=True),
        ],
        torch.device("cpu"),
    )
    assert batch.token_ids.tolist() == [12, 24, 25, 26, 27, 30]
    assert batch.positions.tolist() == [2, 4, 5, 6, 7, 0]
    assert batch.logit_rows.tolist() == [0, 5]
    assert [(s.query_start, s.query_len, s.context_len) for s in batch.seqs] == [(0, 1, 3), (1, 4, 8), (5, 1, 1)]
    assert [s.block_ids for s in batch.seqs] == [[5], [1, 2, 3], [7]]


def test_default_sizes_are_whole_blocks_and_modest() -> None:
    sizes = default_tier_sizes(SLAB, lambda tier: 1 << 40)
    assert sizes[Tier.GPU] == GPU_BLOCKS * SLAB.num_bytes
    assert sizes[Tier.GPU] < sizes[Tier.CPU] < sizes[Tier.DISK]
    assert all(sizes[tier] % SLAB.num_bytes == 0 for tier in (Tier.GPU, Tier.CPU, Tier.DISK))
    assert sizes[Tier.REMOTE] == 2 * GPU_BLOCKS * stored_bytes(SLAB)


def test_default_sizes_take_a_share_of_a_small_machine() -> None:
    sizes = default_tier_sizes(SLAB, lambda tier: 50 * SLAB.num_bytes)
    assert {sizes[tier] for tier in (Tier.GPU, Tier.CPU, Tier.DISK)} == {12 * SLAB.num_bytes}
    assert sizes[Tier.REMOTE] == stored_bytes(SLAB)


def test_a_large_model_s_blocks_do_not_fill_our_own_valkey_by_default() -> None:
    large = SlabSpec(40 << 20, "float16", (20 << 20,))
    assert default_tier_sizes(large, lambda tier: 1 << 40)[Tier.REMOTE] == 6 * stored_bytes(large)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_cuda_without_a_gpu_is_refused_and_auto_takes_the_cpu() -> None:
    with pytest.raises(ValueError, match="finds no CUDA GPU"):
        resolve_device("cuda")
    assert resolve_device("auto") == torch.device("cpu")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "Über"}, "name is 'Über'"),
        ({"block_size": 0}, "block_size is 0"),
        ({"max_num_seqs": 64, "max_num_batched_tokens": 32}, "every running request decodes"),
        ({"tiers": ()}, "first tier must be gpu"),
    ],
)
def test_a_wrong_configuration_says_what_was_expected(wrong: dict[str, object], sentence: str) -> None:
    settings: dict[str, object] = {"name": "local", "tiers": TIERS, **wrong}
    with pytest.raises(ValueError, match=sentence):
        EngineConfig(**settings)  # type: ignore[arg-type]
