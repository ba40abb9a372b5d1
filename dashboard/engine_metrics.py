"""An engine's snapshot as Prometheus metrics: Tierscope's own names, and the same facts under vLLM's.

Reads at scrape, keeps nothing. Every series exists from the start with 0, so that rate() sees the first hit.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot

# vLLM's words for where a cached prompt token came from; nothing here comes from a peer's memory.
_VLLM_SOURCES = {"device": "gpu", "host": "cpu", "p2p": None, "disk": "disk", "external_unspecified": "remote"}
_SLOWER = ("cpu", "disk", "remote")

Values = Mapping[tuple[str, ...], float]


class EngineCollector(Collector):
    """`read` gives a snapshot that is consistent in itself: the identities hold at every scrape."""

    def __init__(self, read: Callable[[], "EngineSnapshot"], *, engine: str, model_name: str, block_size: int) -> None:
        self._read = read
        self._labels = {"engine": engine, "model_name": model_name}
        self._block_size = block_size

    def collect(self) -> Iterator[Metric]:
        snapshot = self._read()
        yield from self._requests(snapshot)
        yield from self._tiers(snapshot)
        yield from self._histograms(snapshot)
        yield from self._vllm(snapshot)
        yield from self._vllm_histograms(snapshot)

    def _requests(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told = snapshot.counters
        yield self._counter("tierscope_prompt_tokens", "Prompt tokens of admitted requests.", told.prompt_tokens)
        yield self._counters(
            "tierscope_cached_prompt_tokens",
            "Prompt tokens that were reused, by the tier that held them when the request was admitted.",
            ["cache_tier"],
            {(str(tier),): tokens for tier, tokens in told.hit_tokens.items()},
        )
        yield self._counter(
            "tierscope_computed_prompt_tokens", "Prompt tokens that were computed.", told.computed_tokens
        )
        yield self._counter("tierscope_generated_tokens", "Tokens generated.", told.generated_tokens)
        yield self._counters(
            "tierscope_requests",
            "Requests that ended, by why.",
            ["finish_reason"],
            {(reason,): count for reason, count in told.requests.items()},
        )
        yield self._gauge("tierscope_requests_running", "Requests being computed now.", snapshot.num_running)
        yield self._gauge("tierscope_requests_waiting", "Requests waiting now.", snapshot.num_waiting)
        yield self._counter(
            "tierscope_preemptions", "Times a request gave its blocks back to others.", told.preemptions
        )

    def _tiers(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        tiers = {str(tier): stats for tier, stats in snapshot.cache.tiers.items()}
        for name, documentation, read in (
            ("tierscope_tier_capacity_bytes", "Bytes that the tier may hold.", lambda s: s.capacity_bytes),
            ("tierscope_tier_used_bytes", "Bytes that the tier holds.", lambda s: s.used_bytes),
            ("tierscope_tier_resident_tokens", "Tokens that lie in the tier.", lambda s: s.resident_tokens),
            (
                "tierscope_tier_capacity_tokens",
                "Tokens that the tier may hold.",
                lambda s: s.capacity_blocks * self._block_size,
            ),
        ):
            values = {(tier,): read(stats) for tier, stats in tiers.items()}
            yield self._gauges(name, documentation, ["cache_tier"], values)
        for name, documentation, read in (
            ("tierscope_tier_loaded_bytes", "Bytes copied from the tier to a faster one.", lambda s: s.loaded_bytes),
            ("tierscope_tier_stored_bytes", "Bytes copied into the tier.", lambda s: s.stored_bytes),
        ):
            values = {(tier,): read(stats) for tier, stats in tiers.items()}
            yield self._counters(name, documentation, ["cache_tier"], values)
        yield self._counters(
            "tierscope_tier_evicted_blocks",
            "Blocks that left the tier, by why.",
            ["cache_tier", "reason"],
            {(tier, why): count for tier, stats in tiers.items() for why, count in stats.evicted_blocks.items()},
        )
        yield self._counters(
            "tierscope_tier_errors",
            "Copies that failed, by direction.",
            ["cache_tier", "op"],
            {(tier, op): count for tier, stats in tiers.items() for op, count in stats.errors.items()},
        )

    def _histograms(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told = snapshot.counters
        yield self._histogram(
            "tierscope_tier_load_seconds",
            "Seconds that a copy from the tier to a faster one took.",
            "cache_tier",
            {str(tier): stats.load_seconds for tier, stats in snapshot.cache.tiers.items()},
        )
        yield self._histogram(
            "tierscope_time_to_first_token_seconds",
            "Seconds from submission to the first token, by the slowest tier that the request read from.",
            "cache_tier",
            {str(tier): counts for tier, counts in told.ttft.items()},
        )
        yield self._histogram(
            "tierscope_inter_token_latency_seconds", "Seconds between two tokens.", None, {"": told.inter_token}
        )
        yield self._histogram(
            "tierscope_request_seconds", "Seconds from submission to the end.", None, {"": told.request_seconds}
        )

    def _vllm(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told = snapshot.counters
        hits = {str(tier): tokens for tier, tokens in told.hit_tokens.items()}
        slower = sum(hits[tier] for tier in _SLOWER)
        yield self._counter("vllm:prompt_tokens", "Number of prefill tokens processed.", told.prompt_tokens)
        yield self._counters(
            "vllm:prompt_tokens_by_source",
            "Number of prompt tokens by source.",
            ["source"],
            {
                ("local_compute",): told.computed_tokens,
                ("local_cache_hit",): hits["gpu"],
                ("external_kv_transfer",): slower,
            },
        )
        yield self._counter(
            "vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external).", hits["gpu"] + slower
        )
        yield self._counters(
            "vllm:prompt_tokens_cached_by_source",
            "Number of cached prompt tokens by cache tier, at admission.",
            ["source"],
            {(source,): hits[tier] if tier else 0 for source, tier in _VLLM_SOURCES.items()},
        )
        for name, documentation, value in (
            ("prefix_cache_queries", "Prefix cache queries, in queried tokens.", told.prefix_cache_queries),
            ("prefix_cache_hits", "Prefix cache hits, in cached tokens.", told.prefix_cache_hits),
            (
                "external_prefix_cache_queries",
                "Prefix cache queries to slower tiers, in queried tokens.",
                told.external_queries,
            ),
            ("external_prefix_cache_hits", "Prefix cache hits in slower tiers, in cached tokens.", told.external_hits),
            ("generation_tokens", "Number of generation tokens processed.", told.generated_tokens),
            ("num_preemptions", "Cumulative number of preemptions.", told.preemptions),
        ):
            yield self._counter(f"vllm:{name}", documentation, value)
        yield self._counters(
            "vllm:request_success",
            "Count of finished requests by reason.",
            ["finished_reason"],
            {(reason,): count for reason, count in told.requests.items()},
        )
        yield self._gauge("vllm:num_requests_running", "Number of requests in execution.", snapshot.num_running)
        yield self._gauge("vllm:num_requests_waiting", "Number of requests waiting.", snapshot.num_waiting)
        gpu = next(stats for tier, stats in snapshot.cache.tiers.items() if str(tier) == "gpu")
        # As vLLM has it: blocks that nobody reads count as free, also while they hold something reusable.
        share = gpu.pinned_blocks / gpu.capacity_blocks if gpu.capacity_blocks else 0.0
        yield self._gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", share)

    def _vllm_histograms(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told = snapshot.counters
        for name, documentation, many in (
            ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", told.ttft.values()),
            ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", [told.inter_token]),
            ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", [told.request_seconds]),
        ):
            yield self._histogram(f"vllm:{name}", documentation, None, {"": _Sum(list(many))})

    def _counter(self, name: str, documentation: str, value: float) -> Metric:
        return self._counters(name, documentation, [], {(): value})

    def _counters(self, name: str, documentation: str, extra: list[str], values: Values) -> Metric:
        return self._filled(CounterMetricFamily(name, documentation, labels=[*self._labels, *extra]), values)

    def _gauge(self, name: str, documentation: str, value: float) -> Metric:
        return self._gauges(name, documentation, [], {(): value})

    def _gauges(self, name: str, documentation: str, extra: list[str], values: Values) -> Metric:
        return self._filled(GaugeMetricFamily(name, documentation, labels=[*self._labels, *extra]), values)

    def _filled(self, family: Any, values: Values) -> Metric:
        for extra, value in values.items():
            family.add_metric([*self._labels.values(), *extra], value)
        return family  # type: ignore[no-any-return]

    def _histogram(self, name: str, documentation: str, extra: str | None, many: Mapping[str, Any]) -> Metric:
        family = HistogramMetricFamily(name, documentation, labels=[*self._labels, *([extra] if extra else [])])
        for value, counts in many.items():
            labels = [*self._labels.values(), *([value] if extra else [])]
            family.add_metric(labels, _cumulative(counts), counts.sum_seconds)
        return family


class _Sum:
    """Histograms with the same bounds as one."""

    def __init__(self, many: list[Any]) -> None:
        self.bounds = many[0].bounds
        self.counts = [sum(column) for column in zip(*(one.counts for one in many), strict=True)]
        self.sum_seconds = sum(one.sum_seconds for one in many)


def _cumulative(histogram: Any) -> list[tuple[str, float]]:
    """Prometheus' buckets count everything up to their bound."""
    pairs, total = [], 0
    for bound, count in zip([*histogram.bounds, float("inf")], histogram.counts, strict=True):
        total += count
        pairs.append((_bound_text(bound), float(total)))
    return pairs


def _bound_text(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(bound)


class Exposition:
    """One engine's registry and its text (Prometheus text format 0.0.4)."""

    def __init__(self, collector: EngineCollector) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(collector)

    def text(self) -> str:
        return generate_latest(self._registry).decode()
