"""The reuse curve as Prometheus metrics: prompt tokens by the capacity that would have served them.

Reads a snapshot, keeps nothing. Summed over capacities they are the engine's prompt tokens. A counter by bound, not a
histogram: a histogram's buckets hold what lies below them, too, and all would move with every request.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import Metric

from dashboard.metric_families import Families

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot


def reuse_metrics(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    told = snapshot.counters.reuse
    if not told.bounds:  # switched off
        return
    bounds = [*map(str, told.bounds), "+Inf"]
    yield make.counters(
        "tierscope_reuse_tokens",
        "Prompt tokens that one LRU cache of this many tokens would have reused, and one of the bound before not; "
        "+Inf: none would have.",
        ["capacity_tokens"],
        {(bound,): tokens for bound, tokens in zip(bounds, told.tokens, strict=True)},
    )
    yield make.counters(
        "tierscope_tenant_reuse_tokens",
        "The same by tenant, at fewer capacities: those of the same cache, which all tenants share.",
        ["tenant", "capacity_tokens"],
        {
            (tenant, bound): tokens
            for tenant, of_tenant in snapshot.counters.tenant_reuse.items()
            for bound, tokens in zip([*map(str, of_tenant.bounds), "+Inf"], of_tenant.tokens, strict=True)
        },
    )
    yield make.gauge(
        "tierscope_reuse_sample_ratio",
        "Share of the blocks below the newest that is looked at; 1: all, and the counts are exact.",
        told.sample_rate,
    )
