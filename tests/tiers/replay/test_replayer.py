"""A replay does, to the block, what the real tiers do with bytes: hits, evictions, flows, whatever policies and modes.

Known hit rates of a real trace are those of ../shared/traces/README.md.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers.replay.requests import BLOCK_TOKENS, Request, path, request, requests
from tests.tiers.rig import SLAB, EndlessMachine, block_bytes
from tiers import CacheConfig, CacheStats, MemoryPool, Policy, Tier, TierConfig, TieredCache, WriteMode
from tiers.replay import reuse as replay_reuse
from tiers.replay.config import MAX_BLOCKS, ReplayConfig, ReplayTier
from tiers.replay.names import chained
from tiers.replay.replayer import Replayer
from tiers.replay.reuse import ReplayReuse
from tiers.whatif import HitCurve, TouchOrder, stack_positions
from tiers.whatif.accesses import Prompt, collect

TRACE = Path(__file__).parents[4] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
TIERS = (Tier.GPU, Tier.CPU, Tier.DISK)

tier_lists = st.lists(
    st.tuples(
        *(st.integers(0, 9), st.sampled_from(Policy), st.sampled_from(WriteMode), st.integers(1, 3)),
        st.sampled_from([0.3, 0.6, 1.0]),
    ),
    min_size=1,
    max_size=3,
)


Drawn = tuple[int, Policy, WriteMode, int, float]


def tiers_of(drawn: Sequence[Drawn], largest: int) -> tuple[ReplayTier, ...]:
    """gpu has room for each request."""
    sizes = [largest + drawn[0][0], *(size for size, *_ in drawn[1:])]
    return tuple(
        ReplayTier(tier, size, policy, mode, hits, share)
        for tier, size, (_, policy, mode, hits, share) in zip(TIERS, sizes, drawn, strict=False)
    )


class Real:
    """The cache that engines have, with tiny blocks; copies are made inside `poll`."""

    def __init__(self, tiers: Sequence[ReplayTier], folder: Path) -> None:
        configs = tuple(
            TierConfig(
                tier.tier,
                tier.num_blocks * block_bytes(tier.tier),
                tier.write_mode,
                tier.policy,
                path=folder if tier.tier is Tier.DISK else None,
                store_after_hits=tier.store_after_hits,
                tenant_quota=tier.tenant_quota,
            )
            for tier in tiers
        )
        pool = MemoryPool(SLAB, tiers[0].num_blocks)
        self.cache = TieredCache(CacheConfig(BLOCK_TOKENS, SLAB, "replay", configs, 0), pool, memory=EndlessMachine())

    def serve(self, asked: Request) -> list[Tier]:
        keys = [key.tobytes() for key in chained([*asked.block_ids, *asked.output_block_ids])]
        lease = self.cache.acquire(keys[: len(asked.block_ids)], len(keys), {}, asked.tenant)
        assert lease is not None
        self._settle()
        first = len(lease.hit_tiers)
        if first < len(keys):
            self.cache.register(lease, first, keys[first:], keys[first - 1] if first else bytes(16))
        self.cache.release(lease)
        self._settle()
        return lease.hit_tiers

    def _settle(self) -> None:
        while self.cache.poll() or self.cache.num_transfers:
            pass


def by_tier(hits: Sequence[Tier], tokens: Sequence[int]) -> dict[Tier, int]:
    sums: dict[Tier, int] = {}
    for tier, count in zip(hits, tokens, strict=False):
        sums[tier] = sums.get(tier, 0) + count
    return sums


def figures(stats: CacheStats) -> list[object]:
    """What is counted, in blocks, but copies that were given up on their way: here each of them arrives."""
    names = ("resident_blocks", "loaded_blocks", "evicted_blocks", "missed_blocks", "refused_blocks")
    return [
        [getattr(tier, name) for name in (*names, "entered_blocks", "left_blocks")] for tier in stats.tiers.values()
    ]


@given(requests, tier_lists)
def test_every_request_gets_what_the_real_tiers_with_bytes_give_it(asked: list[Request], drawn: list[Drawn]) -> None:
    tiers = tiers_of(drawn, max(len(each.block_ids) + len(each.output_block_ids) for each in asked) or 1)
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, tiers))
    with tempfile.TemporaryDirectory() as folder:
        real = Real(tiers, Path(folder))
        try:
            for each in asked:
                served = replayer.serve(each)
                assert served.hit_tokens == by_tier(real.serve(each), each.block_tokens)
                assert served.prompt_tokens == sum(served.hit_tokens.values()) + served.computed_tokens
            assert figures(replayer.stats()) == figures(real.cache.stats())
        finally:
            real.cache.close()
    replayer.check()


@given(requests, st.integers(0, 9), st.integers(0, 9), st.sampled_from([WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH]))
def test_the_split_of_lru_tiers_is_the_one_that_whatif_says(
    asked: list[Request], spare: int, cpu: int, mode: WriteMode
) -> None:
    asked = [request(each.block_ids, (), each.block_tokens[-1] if each.block_tokens else 1) for each in asked]
    gpu = max(len(each.block_ids) for each in asked) + spare or 1
    tiers = (ReplayTier(Tier.GPU, gpu), ReplayTier(Tier.CPU, cpu, write_mode=mode))
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, tiers))
    served = [replayer.serve(each).hit_tokens for each in asked]
    found = [sum(hits.get(tier, 0) for hits in served) for tier in (Tier.GPU, Tier.CPU)]
    accesses = collect(Prompt(each.block_ids, each.block_tokens, each.num_prompt_tokens) for each in asked)
    curve = HitCurve()
    curve.add(stack_positions(accesses, TouchOrder.TAIL), accesses.num_tokens)
    assert curve.split([gpu, cpu], mode) == found


@given(requests, st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_the_reuse_curve_says_what_one_lru_tier_of_each_size_serves(asked: list[Request], gpu: int) -> None:
    """At sizes that are bounds of the curve."""
    needed = max(len(each.block_ids) + len(each.output_block_ids) for each in asked)
    while gpu < needed:
        gpu *= 2
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, (ReplayTier(Tier.GPU, gpu),)))
    hits = sum(sum(replayer.serve(each).hit_tokens.values()) for each in asked)
    counts = replayer.reuse_counts()
    pairs = zip(counts.bounds, counts.tokens, strict=False)
    assert sum(tokens for bound, tokens in pairs if bound // BLOCK_TOKENS <= gpu) == hits
    assert sum(counts.tokens) == sum(each.num_prompt_tokens for each in asked)


def test_the_reuse_curve_is_shared_out_to_the_token_where_a_sample_tells_it() -> None:
    reuse = ReplayReuse(BLOCK_TOKENS, max_blocks=16)
    total = 0
    for number in range(200):
        keys = chained(path(number % 7, 4, number % 3, 3))
        reuse.ask(keys, [BLOCK_TOKENS] * 6 + [5], 6 * BLOCK_TOKENS + 9)
        total += 6 * BLOCK_TOKENS + 9
        assert sum(reuse.counts().tokens) == total
    assert reuse.counts().sample_rate < 1
    reuse.check()


@pytest.mark.parametrize("max_blocks", [16, 1000])
def test_what_waits_to_be_counted_is_bounded_and_the_counts_are_the_same(
    max_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> ReplayReuse:
        reuse = ReplayReuse(BLOCK_TOKENS, max_blocks=max_blocks)
        for number in range(200):
            keys = chained(path(number % 5, 4, number % 3, 3))
            reuse.ask(keys, [BLOCK_TOKENS] * 6 + [5], 6 * BLOCK_TOKENS + 9)
            assert reuse._num_waiting == sum(len(keys) for keys, *_ in reuse._waiting)
        return reuse

    at_once = asked()
    monkeypatch.setattr(replay_reuse, "_MOST_WAITING", 100)
    bounded = asked()
    assert bounded._num_waiting < 100 < at_once._num_waiting
    assert bounded.counts() == at_once.counts()
    bounded.check()


@given(st.lists(st.tuples(st.sampled_from("xy"), requests), max_size=4), st.integers(8, 64))
def test_parts_of_the_traffic_are_counted_in_the_stack_that_all_share(
    turns: list[tuple[str, list[Request]]], max_blocks: int
) -> None:
    whole, sampled = ReplayReuse(1024, 4096), ReplayReuse(1024, max_blocks)
    whose = [(part, each) for part, many in turns for each in many]
    for part, each in whose:
        keys = chained([*each.block_ids, *each.output_block_ids])
        for reuse in (whole, sampled):
            reuse.ask(keys, each.block_tokens, each.num_prompt_tokens, part)
    whole.check()
    sampled.check()
    told = whole.parts()
    asked = [each for _, each in whose]
    accesses = collect(
        Prompt(each.block_ids, each.block_tokens, each.num_prompt_tokens, list(each.output_block_ids)) for each in asked
    )
    positions = stack_positions(accesses, TouchOrder.TAIL)
    of_block = np.repeat([part for part, _ in whose], np.diff(accesses.starts)) if whose else np.array([])
    for part, counts in told.items():
        exact = HitCurve()
        exact.add(positions[of_block == part], accesses.num_tokens[of_block == part])
        assert np.cumsum(counts.tokens)[:-1].tolist() == exact.at([bound // 1024 for bound in counts.bounds])
        assert sum(counts.tokens) == sum(each.num_prompt_tokens for name, each in whose if name == part)


def test_what_does_not_fit_into_gpu_reads_what_is_there_and_leaves_nothing() -> None:
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, (ReplayTier(Tier.GPU, 3),)))
    replayer.serve(request(["a", "b"]))
    served = replayer.serve(request(["a", "b", "c", "d"]))
    assert (served.fits, served.hit_tokens) == (False, {Tier.GPU: 2 * BLOCK_TOKENS})
    assert replayer.stats()[Tier.GPU].resident_blocks == 2
    replayer.check()


def test_a_fourth_tier_needs_no_server_and_takes_what_disk_lets_go() -> None:
    tiers = tuple(ReplayTier(tier, 2) for tier in Tier)
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, tiers))
    for name in "abcd":
        replayer.serve(request([name + "0", name + "1"]))
    assert replayer.serve(request(["a0", "a1"])).hit_tokens == {Tier.REMOTE: 2 * BLOCK_TOKENS}
    replayer.check()


@given(st.lists(st.one_of(st.integers(), st.text(), st.binary(max_size=20)), max_size=6))
def test_a_name_after_the_same_names_has_the_same_key_whatever_follows(names: list[int | str | bytes]) -> None:
    whole = chained(names)
    assert np.array_equal(chained(names[:-1]), whole[:-1] if names else whole)
    assert len({key.tobytes() for key in whole}) == len(names)


def test_numbers_and_texts_that_look_alike_are_other_blocks() -> None:
    keys = {chained([name])[0].tobytes() for name in (1, "1", b"1", -1, 1 << 70, str(1 << 70))}
    assert len(keys) == 5  # a number beyond 64 bits is taken by its digits


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ((), "expected gpu first"),
        ((ReplayTier(Tier.CPU, 1),), "expected gpu first"),
        ((ReplayTier(Tier.GPU, 0),), "at least one"),
        ((ReplayTier(Tier.GPU, 1), ReplayTier(Tier.CPU, MAX_BLOCKS)), "at most"),
    ],
)
def test_tiers_that_cannot_be_are_refused_in_a_sentence(tiers: tuple[ReplayTier, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReplayConfig(BLOCK_TOKENS, tiers)


def real_prompts() -> Iterator[Request]:
    with gzip.open(TRACE) as lines:
        for line in lines:
            told = json.loads(line)
            names = told["hash_ids"]
            tokens = [512] * len(names)
            tokens[-1] = told["input_length"] - 512 * (len(names) - 1)
            yield Request(names, tokens)


@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
def test_a_real_hour_hits_as_often_as_is_known_and_an_exclusive_hierarchy_is_one_stack() -> None:
    """.2116 of the blocks with 10,000, in one tier (tests/tiers/test_trace.py) or in three."""
    tiers = tuple(ReplayTier(tier, size) for tier, size in zip(TIERS, (1_000, 2_000, 7_000), strict=True))
    replayer = Replayer(ReplayConfig(1, tiers))
    num_hits = 0
    for each in real_prompts():
        ones = Request(each.block_ids, [1] * len(each.block_ids))
        num_hits += sum(replayer.serve(ones).hit_tokens.values())
    assert round(num_hits / 288_500, 4) == 0.2116
