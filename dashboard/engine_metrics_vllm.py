"""An engine's snapshot under vLLM 0.33's names, so that a dashboard or alert written for vLLM works unchanged.

Identity at every scrape: the sum of cached_by_source = prefix_cache_hits + external_prefix_cache_hits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import Metric

from dashboard.metric_families import Counts, Families

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot

# vLLM's words for where a cached prompt token came from; nothing here comes from a peer's memory.
_SOURCES = {"device": "gpu", "host": "cpu", "p2p": None, "disk": "disk", "external_unspecified": "remote"}
_SLOWER = ("cpu", "disk", "remote")
_COUNTERS = (
    ("vllm:prompt_tokens", "Number of prefill tokens processed.", "prompt_tokens"),
    ("vllm:prefix_cache_queries", "Prefix cache queries, in queried tokens.", "prefix_cache_queries"),
    ("vllm:prefix_cache_hits", "Prefix cache hits, in cached tokens.", "prefix_cache_hits"),
    ("vllm:external_prefix_cache_queries", "Queries to slower tiers, in queried tokens.", "external_queries"),
    ("vllm:external_prefix_cache_hits", "Hits in slower tiers, in cached tokens.", "external_hits"),
    ("vllm:generation_tokens", "Number of generation tokens processed.", "generated_tokens"),
    ("vllm:num_preemptions", "Cumulative number of preemptions.", "preemptions"),
)


def vllm_metrics(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    yield from _tokens(snapshot, make)
    yield from _requests(snapshot, make)
    yield from _histograms(snapshot, make)


def _tokens(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    told = snapshot.counters
    hits = {str(tier): tokens for tier, tokens in told.hit_tokens.items()}
    slower = sum(hits[tier] for tier in _SLOWER)
    for name, documentation, field in _COUNTERS:
        yield make.counter(name, documentation, getattr(told, field))
    yield make.counter("vllm:prompt_tokens_cached", "Cached prompt tokens (local + external).", hits["gpu"] + slower)
    yield make.counters(
        "vllm:prompt_tokens_by_source",
        "Number of prompt tokens by source.",
        ["source"],
        {
            ("local_compute",): told.computed_tokens,
            ("local_cache_hit",): hits["gpu"],
            ("external_kv_transfer",): slower,
        },
    )
    yield make.counters(
        "vllm:prompt_tokens_cached_by_source",
        "Number of cached prompt tokens by cache tier, at admission.",
        ["source"],
        {(source,): hits[tier] if tier else 0 for source, tier in _SOURCES.items()},
    )


def _requests(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    ended = {(str(reason),): count for reason, count in snapshot.counters.requests.items()}
    yield make.counters("vllm:request_success", "Count of finished requests.", ["finished_reason"], ended)
    yield make.gauge("vllm:num_requests_running", "Number of requests in execution.", snapshot.num_running)
    yield make.gauge("vllm:num_requests_waiting", "Number of requests waiting.", snapshot.num_waiting)
    gpu = next(stats for tier, stats in snapshot.cache.tiers.items() if str(tier) == "gpu")
    # As vLLM has it: blocks that nobody reads count as free, also while they hold something reusable.
    # While a tier shrinks under running requests they read more blocks than it will have: that is full, not 141 %.
    share = min(gpu.pinned_blocks / gpu.capacity_blocks, 1.0) if gpu.capacity_blocks else 0.0
    yield make.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", share)


def _histograms(snapshot: "EngineSnapshot", make: Families) -> Iterator[Metric]:
    told = snapshot.counters
    ttft = Total.of(list(told.ttft.values()))
    yield make.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttft)
    yield make.histogram(
        "vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", told.inter_token
    )
    yield make.histogram(
        "vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", told.request_seconds
    )


@dataclass(frozen=True)
class Total:
    """Histograms with the same bounds as one."""

    bounds: Sequence[float]
    counts: Sequence[int]
    sum_seconds: float

    @classmethod
    def of(cls, many: Sequence[Counts]) -> "Total":
        counts = [sum(column) for column in zip(*(one.counts for one in many), strict=True)]
        return cls(many[0].bounds, counts, sum(one.sum_seconds for one in many))
