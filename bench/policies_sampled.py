"""Does a sample of a trace say what other policies and write modes change? Against all of it, in three tiers.

The Mooncake trace (../shared/traces), parsing excluded. What is compared is what a setup changes against LRU written
back at the same sizes, tier by tier, since that is what the advice adds to the curve. Says nothing without the trace.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from bench.result import Result, compare
from tiers import Policy, Tier, WriteMode
from tiers.replay.config import ReplayTier
from tiers.replay.miniature import hit_shares
from tiers.replay.sample import RequestSample
from tiers.replay.warm_up import warm_up
from tiers.traces import open_trace

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
SIZES = ((1_000, 9_000, 50_000), (4_000, 20_000, 0))
SETUPS = tuple(product(Policy, (WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH)))
BAR_POINTS = 1.0
BAR_TIME = 1.0

Shares = Mapping[Tier, float]
Setup = tuple[tuple[int, ...], Policy, WriteMode]


def run() -> Iterable[Result]:
    if not TRACE.exists():
        return
    warm_up()
    whole, part = RequestSample(1 << 60), RequestSample()
    for request in open_trace(TRACE):
        whole.add(request)
        part.add(request)
    (exact, theirs), (sampled, ours) = (_all(sample) for sample in (whole, part))
    yield compare(
        f"largest error of a change, {100 * part.rate:g} % of the blocks, {len(exact)} setups",
        ours=max(_errors(exact, sampled)),
        reference=1.0,
        reference_name="a point",
        unit="points",
        bar=BAR_POINTS,
        better="lower",
    )
    yield compare(
        "a simulation of a sample",
        ours=ours,
        reference=theirs,
        reference_name="of all blocks",
        unit="s",
        bar=BAR_TIME,
        better="lower",
    )


def _all(sample: RequestSample) -> tuple[dict[Setup, Shares], float]:
    """By sizes and setup, and this thread's seconds of processor time for each."""
    started_at = time.thread_time()
    found: dict[Setup, Shares] = {
        (sizes, policy, mode): hit_shares(sample, _tiers(sizes, policy, mode))
        for sizes in SIZES
        for policy, mode in SETUPS
    }
    return found, (time.thread_time() - started_at) / len(found)


def _tiers(sizes: Sequence[int], policy: Policy, mode: WriteMode) -> list[ReplayTier]:
    return [
        ReplayTier(tier, size, policy, WriteMode.WRITE_BACK if tier is Tier.GPU else mode)
        for tier, size in zip(Tier, sizes, strict=False)
    ]


def _errors(exact: Mapping[Setup, Shares], sampled: Mapping[Setup, Shares]) -> Iterable[float]:
    """Points of the prompt tokens, of each tier and of all together."""
    for sizes, policy, mode in exact:
        base = sizes, Policy.LRU, WriteMode.WRITE_BACK
        wrong = [
            (sampled[sizes, policy, mode][tier] - sampled[base][tier])
            - (exact[sizes, policy, mode][tier] - exact[base][tier])
            for tier in exact[base]
        ]
        yield from (100 * abs(each) for each in (*wrong, sum(wrong)))
