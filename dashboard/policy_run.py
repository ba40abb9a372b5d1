"""Tries policies and write modes on a trace: reads a sample of it, and asks small tiers what they serve.

One of two modules of the dashboard that ask the tiers to replay; only workers load it. Knows nothing about engines,
time or money but the seconds that somebody says a token takes from each tier. Stores nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings

from dashboard.policy_words import POLICIES, WRITE_MODES, Setup, base_of, setup_of
from dashboard.trace_folder import trace_path
from dashboard.trace_texts import load_tokenizer
from tiers.names import Policy, Tier, WriteMode
from tiers.replay.config import ReplayTier
from tiers.replay.miniature import hit_shares
from tiers.replay.sample import RequestSample
from tiers.replay.search import one_after_the_other
from tiers.traces import CountFaults, open_trace

_GPU = "gpu"
Shares = Sequence[float]  # of the prompt tokens, by tier
Told = Mapping[str, Any]
Sample = RequestSample


def read_sample(file_name: str, form: str, has_time: Callable[[], bool]) -> tuple[RequestSample, bool]:
    """The trace's requests while there is time, and whether that was all. Raises ValueError, OSError."""
    sample = RequestSample()
    with open_trace(
        trace_path(file_name),
        kind=form,
        load_tokenizer=load_tokenizer,
        block_tokens=settings.BLOCK_SIZE,
        faults=CountFaults(),
    ) as trace:
        for request in trace:
            sample.add(request)
            if not has_time():
                return sample, False
    if not sample.requests:
        raise ValueError(f"{file_name} has no requests with blocks that can be read.")
    return sample, True


def simulate(sample: RequestSample, tiers: Sequence[Told], sizes: Mapping[str, int], setup: Setup) -> Shares:
    """What each of `tiers` serves with these sizes in bytes."""
    found = hit_shares(
        sample,
        [
            ReplayTier(
                Tier(told["tier"]),
                _blocks(told, sizes, sample.largest_block),
                Policy(policy),
                WriteMode(write_mode),
                told["store_after_hits"],
            )
            for told, (policy, write_mode) in zip(tiers, setup, strict=True)
        ],
    )
    return [found[Tier(told["tier"])] for told in tiers]


def _blocks(told: Told, sizes: Mapping[str, int], block_tokens: int) -> int:
    return int(sizes[told["tier"]] / told["bytes_a_token"]) // block_tokens


def try_all(
    tiers: Sequence[Told], sizes: Mapping[str, int], seconds: Mapping[str, float], serve: Callable[[Setup], Shares]
) -> None:
    """Asks `serve` for what has to be known at these sizes: LRU, today's setup, and on the way to the best one.

    A tier that is off has no choices, and nothing is written into gpu by a mode.
    """
    serve(base_of(tiers))
    choices = [_choices(told["tier"], sizes[told["tier"]]) for told in tiers]
    one_after_the_other(setup_of(tiers), choices, lambda setup: _cost(tiers, seconds, serve(setup)))


def _choices(tier: str, num_bytes: int) -> list[tuple[str, str]]:
    if not num_bytes:
        return []
    if tier == _GPU:
        return [(policy, WRITE_MODES[0]) for policy in POLICIES]
    return [(policy, mode) for policy in POLICIES for mode in WRITE_MODES]


def _cost(tiers: Sequence[Told], seconds: Mapping[str, float], hit: Shares) -> float:
    """Seconds of the mean prompt token; where nobody tells them, the share that is computed."""
    computed = 1.0 - sum(hit)
    loads = sum(share * seconds.get(told["tier"], 0.0) for told, share in zip(tiers, hit, strict=True))
    return computed * seconds.get("computed", 1.0) + loads
