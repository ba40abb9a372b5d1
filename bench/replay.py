"""How fast a trace goes through the tiers' books: block accesses a second of this thread's processor time.

Replays the Mooncake trace (../shared/traces), parsing excluded, in one, two and three tiers, exclusive and written
through, with each policy. Says nothing where there is no trace.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.result import Result, compare
from tiers import Policy, Tier, WriteMode
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.replayer import Replayer
from tiers.replay.warm_up import warm_up
from tiers.traces import TraceRequest, open_trace

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
BAR_PER_SECOND = 200_000
BLOCK_TOKENS = 512
CASES = (
    ("one tier", (10_000,), WriteMode.WRITE_BACK, Policy.LRU),
    ("two tiers", (1_000, 9_000), WriteMode.WRITE_BACK, Policy.LRU),
    ("three tiers", (1_000, 9_000, 50_000), WriteMode.WRITE_BACK, Policy.LRU),
    ("three tiers, write through", (1_000, 9_000, 50_000), WriteMode.WRITE_THROUGH, Policy.LRU),
    ("three tiers, s3fifo", (1_000, 9_000, 50_000), WriteMode.WRITE_BACK, Policy.S3FIFO),
    ("three tiers, arc", (1_000, 9_000, 50_000), WriteMode.WRITE_BACK, Policy.ARC),
)


def run() -> Iterable[Result]:
    if not TRACE.exists():
        return
    warm_up()
    requests = list(open_trace(TRACE))
    for name, sizes, mode, policy in CASES:
        pairs = zip(Tier, sizes, strict=False)
        tiers = tuple(ReplayTier(tier, size, policy, mode) for tier, size in pairs)
        yield compare(
            f"replay, {name}",
            ours=_per_second(requests, tiers),
            reference=BAR_PER_SECOND,
            reference_name="the bar",
            unit="blocks/s",
            bar=1.0,
            better="higher",
        )


def _per_second(requests: Sequence[TraceRequest], tiers: tuple[ReplayTier, ...]) -> float:
    """The curve of every capacity is made along with it."""
    replayer = Replayer(ReplayConfig(BLOCK_TOKENS, tiers))
    started_at = time.thread_time()
    for request in requests:
        replayer.serve(request)
    replayer.reuse_counts()
    return sum(len(each.block_ids) for each in requests) / (time.thread_time() - started_at)
