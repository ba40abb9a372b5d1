"""Other policies at other sizes: with all blocks what the real cache does, with a sample close to it."""

import pytest
from hypothesis import given, settings

from tests.tiers.rig import EndlessMachine
from tests.tiers.whatif.test_shards import synthetic
from tests.tiers.whatif.test_stack_positions import ROOT, prompts
from tiers import CacheConfig, MemoryPool, Policy, SlabSpec, Tier, TierConfig, TieredCache
from tiers.whatif.accesses import Prompt, collect, uniform
from tiers.whatif.miniature import Miniature, miniature_rates

SLAB = SlabSpec(1, "uint8", (1,))


def served(requests: list[list[str]], capacity: int, policy: Policy) -> int:
    """By the real cache, block by block."""
    tiers = (TierConfig(Tier.GPU, capacity, policy=policy),)
    cache = TieredCache(CacheConfig(1, SLAB, "x", tiers, 0), MemoryPool(SLAB, capacity), memory=EndlessMachine())
    hits = 0
    for names in requests:
        keys = [name.ljust(16).encode() for name in names]
        lease = cache.acquire(keys, len(keys), {})
        assert lease is not None
        first = len(lease.hit_tiers)
        cache.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)
        cache.release(lease)
        hits += first
    return hits


@settings(max_examples=30)
@given(prompts)
def test_with_all_blocks_it_is_the_real_cache(requests: list[list[str]]) -> None:
    accesses = uniform(requests)
    capacity = max(map(len, requests)) + 3
    if not accesses.num_accesses:
        return
    for policy in (Policy.S3FIFO, Policy.ARC):
        blocks, tokens = Miniature(accesses, 1).rates(capacity, policy)
        assert blocks == tokens == pytest.approx(served(requests, capacity, policy) / accesses.num_accesses)


def test_a_tenth_of_the_blocks_is_within_two_points() -> None:
    accesses = synthetic(1000)
    sizes = (300, 800)
    for policy in (Policy.S3FIFO, Policy.ARC):
        whole = miniature_rates(accesses, sizes, policy, 1)
        sampled = miniature_rates(accesses, sizes, policy, 0.1)
        for (blocks, _), (estimate, _) in zip(whole, sampled, strict=True):
            assert estimate == pytest.approx(blocks, abs=0.02)


def test_lru_and_a_cache_without_limit_are_exact_whatever_the_sample() -> None:
    accesses = uniform([["a", "b"], ["a", "c"], ["a", "b"]])
    assert miniature_rates(accesses, [None, 2], Policy.LRU, 1) == [(3 / 6, 3 / 6), (2 / 6, 2 / 6)]
    assert miniature_rates(accesses, [None], Policy.ARC, 1) == [(3 / 6, 3 / 6)]


def test_a_prompt_that_is_larger_than_the_cache_is_not_served_and_tokens_weigh() -> None:
    accesses = collect([Prompt(["a"], [3], 3), Prompt(["a", "b", "c"], [3, 3, 1], 7), Prompt(["a"], [3], 3)])
    assert Miniature(accesses, 1).rates(2, Policy.S3FIFO) == (2 / 5, 6 / 13)


@pytest.mark.parametrize(("rate", "sentence"), [(0, "The sample rate is 0"), (1e-9, "take more")])
def test_a_rate_that_leaves_nothing_is_refused(rate: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        miniature_rates(uniform([["a"]]), [1], Policy.ARC, rate)
