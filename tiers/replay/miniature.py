"""What tiers of any sizes, policies and write modes would serve: the real ones, small, over a sample of the blocks.

Miniature simulation (Waldspurger, Saemundsson, Ahmad & Park, USENIX ATC'17): for blocks that are sampled by their hash,
tiers of rate × size do what whole ones do for all. What the draw alone does is nearly the same whatever the policy, so
differences between two of these answers are closer than the answers. Knows nothing about files, time or money.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tiers.names import Tier
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.replayer import Replayer
from tiers.replay.reuse import NoReplayReuse
from tiers.replay.sample import RequestSample


def hit_shares(sample: RequestSample, tiers: Sequence[ReplayTier]) -> Mapping[Tier, float]:
    """Share of the prompt tokens that each tier serves; `tiers` in whole blocks, fastest first.

    Raises ValueError for tiers that cannot be, see `ReplayConfig`.
    """
    config = ReplayConfig(sample.largest_block, tuple(_small(tier, sample.rate) for tier in tiers))
    replayer = Replayer(config, NoReplayReuse())
    hits: dict[Tier, int] = defaultdict(int)
    for request in sample.requests:
        served = replayer.serve_keys(request.keys, request.block_tokens, sum(request.block_tokens))
        for tier, tokens in served.hit_tokens.items():
            hits[tier] += tokens
    total = max(sample.prompt_tokens, 1)
    return {tier.tier: hits[tier.tier] / total for tier in tiers}


def _small(tier: ReplayTier, rate: float) -> ReplayTier:
    least = 1 if tier.tier is Tier.GPU else 0
    return replace(tier, num_blocks=max(least, round(tier.num_blocks * rate)))
