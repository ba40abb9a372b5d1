"""What tiers cost and what moves between them, as Prometheus metrics: copies, flows, and what computing costs instead.

Reads a snapshot, keeps nothing. Per tier, tokens that entered minus tokens that left are those that are resident.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import Metric

from dashboard.metric_families import Families

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot

_COPIES = (
    ("loaded_blocks", "Blocks copied from the tier to a faster one."),
    ("stored_blocks", "Blocks copied into the tier."),
    ("store_seconds", "Seconds that copies into the tier took."),
)


def tier_cost_metrics(snapshot: "EngineSnapshot", make: Families, block_size: int) -> Iterator[Metric]:
    yield from _copies(snapshot, make)
    yield from _flows(snapshot, make, block_size)
    yield _refused(snapshot, make, block_size)
    yield from _prefill(snapshot, make)


def _copies(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    for name, documentation in _COPIES:
        values = {(str(tier),): getattr(stats, name) for tier, stats in snapshot.cache.tiers.items()}
        yield make.counters(f"tierscope_tier_{name}", documentation, ["cache_tier"], values)


def _flows(snapshot: "EngineSnapshot", make: Families, block_size: int) -> Iterator[Metric]:
    tiers = snapshot.cache.tiers.items()
    yield make.counters(
        "tierscope_tier_entered_tokens",
        "Tokens whose blocks came into the tier, by the tier they came from: computed by the model, or found there.",
        ["cache_tier", "origin"],
        {(str(tier), origin): count * block_size for tier, s in tiers for origin, count in s.entered_blocks.items()},
    )
    yield make.counters(
        "tierscope_tier_left_tokens",
        "Tokens whose blocks left the tier, by the tier they went to: freed where another has them, dropped if none.",
        ["cache_tier", "to"],
        {(str(tier), way): count * block_size for tier, s in tiers for way, count in s.left_blocks.items()},
    )
    yield make.counters(
        "tierscope_tier_missed_after_eviction_tokens",
        "Tokens that were computed again soon after the tier had dropped their blocks for lack of room.",
        ["cache_tier"],
        {(str(tier),): stats.missed_blocks * block_size for tier, stats in tiers},
    )


def _refused(snapshot: "EngineSnapshot", make: Families, block_size: int) -> Metric:
    return make.counters(
        "tierscope_tier_refused_tokens",
        "Tokens whose blocks were not stored: their tenant had its share of the tier, and nothing of that could leave.",
        ["cache_tier"],
        {(str(tier),): stats.refused_blocks * block_size for tier, stats in snapshot.cache.tiers.items()},
    )


def _prefill(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    told = snapshot.counters
    tokens, seconds = told.prefill_tokens, told.prefill_seconds
    yield make.counter("tierscope_prefill_tokens", "Tokens computed in steps of at least 64 prompt tokens.", tokens)
    yield make.counter("tierscope_prefill_seconds", "Seconds that the model took for these tokens.", seconds)
