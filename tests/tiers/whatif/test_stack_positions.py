"""One pass over accesses against a cache of each size: a list in order of last use, and the real tiers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tiers.rig import EndlessMachine
from tiers import CacheConfig, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache, WriteMode
from tiers.whatif import HitCurve, TouchOrder, stack, stack_positions
from tiers.whatif.accesses import Prompt, collect, uniform
from tiers.whatif.stack import NEVER, RecencyStack

SLAB = SlabSpec(1, "uint8", (1,))
ROOT = bytes(16)
MODES = st.sampled_from([WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH])

# Prompts as paths through a tree: a prefix of one of a few chains, then blocks of its own.
prompts = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30
).map(lambda drawn: [chain(*each) for each in drawn])


def chain(system: int, shared: int, user: int, own: int) -> list[str]:
    return [f"s{system}.{n}" for n in range(shared)] + [f"s{system}.{shared}.u{user}.{n}" for n in range(own)]


def lru_hits(requests: list[list[str]], capacity: int, order: TouchOrder) -> list[int]:
    """Hits of each request, by the plainest cache there is."""
    recency: list[str] = []  # newest last
    hits = []
    for blocks in requests:
        cached = set(recency[-capacity:] if capacity else [])
        hits.append(next((n for n, block in enumerate(blocks) if block not in cached), len(blocks)))
        for block in blocks if order is TouchOrder.HEAD else reversed(blocks):
            if block in recency:
                recency.remove(block)
            recency.append(block)
    return hits


@given(prompts, st.sampled_from(TouchOrder), st.integers(0, 40))
def test_positions_give_the_hits_of_an_lru_cache_of_any_size(
    requests: list[list[str]], order: TouchOrder, capacity: int
) -> None:
    accesses = uniform(requests)
    is_hit = stack_positions(accesses, order) < capacity
    starts = accesses.starts
    found = [int(is_hit[a:b].sum()) for a, b in pairwise(starts)]
    assert found == lru_hits(requests, capacity, order)


@given(prompts, st.integers(1, 9), st.integers(0, 9), MODES)
@example(
    [chain(*e) for e in [(1, 2, 0, 0), (0, 4, 0, 4), (1, 2, 0, 1), (0, 0, 0, 3), (0, 3, 0, 4), (1, 1, 0, 0)]],
    2,
    8,
    WriteMode.WRITE_THROUGH,
)
def test_the_split_by_tier_is_that_of_the_real_tiers(
    requests: list[list[str]], spare: int, cpu: int, mode: WriteMode
) -> None:
    gpu = max(map(len, requests)) + spare
    cache = TieredCache(_config(gpu, cpu, mode), MemoryPool(SLAB, gpu), memory=EndlessMachine())
    served = {Tier.GPU: 0, Tier.CPU: 0}
    for blocks in requests:
        for tier in _request(cache, [block.ljust(16).encode() for block in blocks]):
            served[tier] += 1
    curve = HitCurve()
    curve.add(stack_positions(uniform(requests)))
    assert curve.split([gpu, cpu], mode) == list(served.values())
    cache.check()


def _config(gpu: int, cpu: int, mode: WriteMode) -> CacheConfig:
    return CacheConfig(1, SLAB, "whatif", (TierConfig(Tier.GPU, gpu, mode), TierConfig(Tier.CPU, cpu, mode)), 0)


def _request(cache: TieredCache, keys: list[bytes]) -> list[Tier]:
    lease = cache.acquire(keys, len(keys), {})
    assert lease is not None
    while cache.poll() or cache.num_transfers:
        pass
    first = len(lease.hit_tiers)
    cache.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)
    cache.release(lease)
    while cache.poll() or cache.num_transfers:
        pass
    return lease.hit_tiers


@given(prompts, st.integers(1, 7), st.sampled_from(TouchOrder))
def test_times_are_numbered_anew_without_a_difference(requests: list[list[str]], batch: int, order: TouchOrder) -> None:
    accesses = uniform(requests)
    recency = RecencyStack()
    parts = []
    for first in range(0, accesses.num_requests, batch):
        starts = accesses.starts[first : first + batch + 1]
        parts.append(recency.access(accesses.block_ids[starts[0] : starts[-1]], starts - starts[0], order))
        recency.check()
    assert np.array_equal(np.concatenate(parts), stack_positions(accesses, order))


def test_many_accesses_go_through_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [chain(n % 3, 4, n % 5, n % 7) for n in range(200)]
    expected = stack_positions(uniform(requests))
    monkeypatch.setattr(stack, "CHUNK_ACCESSES", 10)
    assert np.array_equal(stack_positions(uniform(requests)), expected)


@given(prompts, st.lists(st.integers(0, 50), min_size=1, max_size=4), MODES)
def test_tiers_together_serve_what_their_stack_serves(
    requests: list[list[str]], sizes: list[int], mode: WriteMode
) -> None:
    curve = HitCurve()
    curve.add(stack_positions(uniform(requests)))
    together = max(sizes) if mode is WriteMode.WRITE_THROUGH else sum(sizes)
    assert sum(curve.split(sizes, mode)) == curve.hits(together)


def test_the_split_of_tiers_that_wait_for_hits_is_not_told() -> None:
    with pytest.raises(ValueError, match="no part of one stack"):
        HitCurve().split([1, 1], WriteMode.WRITE_SELECTIVE)


def test_tokens_weigh_what_their_blocks_hold() -> None:
    accesses = collect(
        [
            Prompt(names, tokens, sum(tokens))
            for names, tokens in [(["a", "b"], [512, 100]), (["a", "b"], [512, 100]), (["a", "c"], [512, 7])]
        ]
    )
    curve = HitCurve()
    curve.add(stack_positions(accesses), accesses.num_tokens)
    assert (curve.total, curve.hits(None), curve.hits(1)) == (612 + 612 + 519, 612 + 512, 512 + 512)


def test_a_curve_may_be_collected_in_parts() -> None:
    whole, parts = HitCurve(), HitCurve()
    positions = np.array([3, NEVER, 0, 7, 3], np.int64)
    whole.add(positions)
    parts.add(positions[:2])
    assert parts.hits(None) == 1
    parts.add(positions[2:])
    assert parts.at([0, 1, 4, 8, None]) == whole.at([0, 1, 4, 8, None]) == [0, 1, 3, 4, 4]
