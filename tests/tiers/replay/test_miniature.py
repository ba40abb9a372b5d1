"""Small tiers over a sample: what whole ones do where nothing is left out, and a bounded sample of whole blocks."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers.replay.requests import BLOCK_TOKENS, Request, path, request, requests
from tests.tiers.replay.test_replayer import Drawn, tier_lists, tiers_of
from tiers import Policy, Tier
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.miniature import hit_shares
from tiers.replay.names import chained
from tiers.replay.replayer import Replayer
from tiers.replay.sample import RequestSample
from tiers.replay.search import one_after_the_other


def sample_of(asked: Sequence[Request], max_accesses: int = 10_000) -> RequestSample:
    sample = RequestSample(max_accesses)
    for each in asked:
        sample.add(each)
    return sample


@given(requests, tier_lists)
def test_where_every_block_is_sampled_it_is_the_replay(asked: list[Request], drawn: list[Drawn]) -> None:
    """Of tiers without shares: a sample does not say whose blocks they are."""
    drawn = [(size, policy, mode, hits, 1.0) for size, policy, mode, hits, _ in drawn]
    tiers = tiers_of(drawn, max(len(each.block_ids) + len(each.output_block_ids) for each in asked) or 1)
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, tiers))
    served = [replayer.serve(each) for each in asked]
    prompt = sum(each.prompt_tokens for each in served)
    shares = hit_shares(sample_of(asked), tiers)
    assert shares == {
        tier.tier: sum(each.hit_tokens.get(tier.tier, 0) for each in served) / max(prompt, 1) for tier in tiers
    }


@given(requests, st.integers(1, 60))
def test_a_sample_has_all_accesses_of_a_block_or_none_and_no_more_than_it_may(
    asked: list[Request], max_accesses: int
) -> None:
    sample = sample_of(asked, max_accesses)
    kept = [key.tobytes() for each in sample.requests for key in each.keys]
    of_trace = [key.tobytes() for each in asked for key in chained([*each.block_ids, *each.output_block_ids])]
    assert len(kept) == sample.num_accesses <= max_accesses
    assert sample.num_requests == len(asked)
    assert kept == [key for key in of_trace if key in set(kept)], "an access is missing, or out of order"
    if sample.rate == 1:
        assert sample.prompt_tokens == sum(each.num_prompt_tokens for each in asked)


def test_a_tenth_of_many_blocks_says_about_what_all_of_them_do() -> None:
    asked = [request(path(n % 3, 4, n * n % 150, 6)) for n in range(3_000)]
    tiers = (ReplayTier(Tier.GPU, 200), ReplayTier(Tier.CPU, 400, Policy.ARC))
    whole, part = (hit_shares(sample_of(asked, most), tiers) for most in (1_000_000, 8_000))
    assert sample_of(asked, 8_000).rate <= 0.25
    assert sum(part.values()) == pytest.approx(sum(whole.values()), abs=0.08)


def test_the_smallest_gpu_tier_of_a_sample_has_one_block() -> None:
    asked = [request(path(0, 1, n % 50, 3)) for n in range(400)]
    shares = hit_shares(sample_of(asked, 200), (ReplayTier(Tier.GPU, 1), ReplayTier(Tier.CPU, 0)))
    assert shares[Tier.CPU] == 0


# -- one part after the other -----------------------------------------------------------------------------------------
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4))
def test_parts_that_do_not_depend_on_each_other_get_the_best_choice_each(choices: list[list[int]]) -> None:
    tried: list[tuple[int, ...]] = []

    def cost(setup: tuple[int, ...]) -> float:
        tried.append(setup)
        return sum(setup)

    start = tuple(of_part[-1] for of_part in choices)
    best = one_after_the_other(start, choices, cost)
    assert best == tuple(map(min, choices))
    assert tried[0] == start
    assert len(tried) <= 1 + sum(map(len, choices))
