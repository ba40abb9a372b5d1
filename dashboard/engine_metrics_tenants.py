"""Whose prompt tokens they were, as Prometheus metrics: a bounded number of tenants by name, the rest as `other`.

Reads a snapshot, keeps nothing. Summed over tenants they are the engine's own counters, tier by tier.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import Metric

from dashboard.metric_families import Families
from dashboard.tenants import OTHER

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot


def tenant_metrics(snapshot: "EngineSnapshot", make: Families, block_size: int) -> Iterator[Metric]:
    tenants = snapshot.counters.tenants.items()
    yield make.counters(
        "tierscope_tenant_prompt_tokens",
        "Prompt tokens of admitted requests, by tenant.",
        ["tenant"],
        {(name,): told.prompt_tokens for name, told in tenants},
    )
    yield make.counters(
        "tierscope_tenant_cached_prompt_tokens",
        "Prompt tokens that were reused, by tenant and by the tier that held them when the request was admitted.",
        ["tenant", "cache_tier"],
        {(name, str(tier)): tokens for name, told in tenants for tier, tokens in told.hit_tokens.items()},
    )
    yield make.counters(
        "tierscope_tenant_computed_prompt_tokens",
        "Prompt tokens that were computed, by tenant.",
        ["tenant"],
        {(name,): told.computed_tokens for name, told in tenants},
    )
    yield make.gauges(
        "tierscope_tenant_resident_tokens",
        "Tokens that lie in the tier, by tenant.",
        ["tenant", "cache_tier"],
        {
            (name, str(tier)): blocks * block_size
            for tier, stats in snapshot.cache.tiers.items()
            if stats.is_configured
            for name, blocks in _named(stats.tenant_blocks, snapshot.counters.tenants).items()
        },
    )


def _named(blocks: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """By those names; what others have, and what was found without saying whose it is, as `other`."""
    named = {name: blocks.get(name, 0) for name in names}
    return named | {OTHER: named.get(OTHER, 0) + sum(blocks.values()) - sum(named.values())}
