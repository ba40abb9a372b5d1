"""An engine's snapshot as Prometheus metrics under Tierscope's own names (vLLM's are in engine_metrics_vllm.py).

Reads at scrape, keeps nothing. Every series exists from the start with 0, so that rate() sees the first hit.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from dashboard.engine_metrics_reuse import reuse_metrics
from dashboard.engine_metrics_tenants import tenant_metrics
from dashboard.engine_metrics_tiers import tier_cost_metrics
from dashboard.engine_metrics_vllm import vllm_metrics
from dashboard.metric_families import Families

if TYPE_CHECKING:
    from dashboard.engine_host import EngineSnapshot

_TIER_GAUGES = (
    ("tierscope_tier_capacity_bytes", "Bytes that the tier may hold.", "capacity_bytes"),
    (
        "tierscope_tier_used_bytes",
        "Bytes that the tier holds; above its capacity while it shrinks and running requests still read from it.",
        "used_bytes",
    ),
    ("tierscope_tier_resident_tokens", "Tokens that lie in the tier.", "resident_tokens"),
)
_TIER_COUNTERS = (
    ("tierscope_tier_loaded_bytes", "Bytes copied from the tier to a faster one.", "loaded_bytes"),
    ("tierscope_tier_stored_bytes", "Bytes copied into the tier.", "stored_bytes"),
)


class EngineCollector(Collector):
    """`read` gives a snapshot that is consistent in itself: the identities hold at every scrape."""

    def __init__(self, read: Callable[[], "EngineSnapshot"], *, engine: str, model_name: str, block_size: int) -> None:
        self._read = read
        self._families = Families({"engine": engine, "model_name": model_name})
        self._block_size = block_size

    def collect(self) -> Iterator[Metric]:
        snapshot = self._read()
        yield from self._tokens(snapshot)
        yield from self._requests(snapshot)
        yield from self._tiers(snapshot)
        yield from self._health(snapshot)
        yield from self._moves(snapshot)
        yield from self._recorded(snapshot)
        yield from tenant_metrics(snapshot, self._families, self._block_size)
        yield from reuse_metrics(snapshot, self._families)
        yield from tier_cost_metrics(snapshot, self._families, self._block_size)
        yield from self._histograms(snapshot)
        yield from vllm_metrics(snapshot, self._families)

    def _tokens(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told, make = snapshot.counters, self._families
        yield make.counter("tierscope_prompt_tokens", "Prompt tokens of admitted requests.", told.prompt_tokens)
        yield make.counters(
            "tierscope_cached_prompt_tokens",
            "Prompt tokens that were reused, by the tier that held them when the request was admitted.",
            ["cache_tier"],
            {(str(tier),): tokens for tier, tokens in told.hit_tokens.items()},
        )
        yield make.counter(
            "tierscope_computed_prompt_tokens", "Prompt tokens that were computed.", told.computed_tokens
        )
        yield make.counters(
            "tierscope_tier_load_skipped_tokens",
            "Computed prompt tokens that lay in the tier, but were cheaper to compute than to load.",
            ["cache_tier"],
            {(str(tier),): tokens for tier, tokens in told.load_skipped_tokens.items()},
        )
        yield make.counter("tierscope_generated_tokens", "Tokens generated.", told.generated_tokens)

    def _requests(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told, make = snapshot.counters, self._families
        ended = {(str(reason),): count for reason, count in told.requests.items()}
        yield make.counters("tierscope_requests", "Requests that ended, by why.", ["finish_reason"], ended)
        yield make.gauge("tierscope_requests_running", "Requests being computed now.", snapshot.num_running)
        yield make.gauge("tierscope_requests_waiting", "Requests waiting now.", snapshot.num_waiting)
        yield make.counter("tierscope_preemptions", "Times a request gave its blocks back to others.", told.preemptions)

    def _tiers(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        tiers, make, label = snapshot.cache.tiers, self._families, ["cache_tier"]
        for name, documentation, field in _TIER_GAUGES:
            values = {(str(tier),): getattr(stats, field) for tier, stats in tiers.items()}
            yield make.gauges(name, documentation, label, values)
        tokens = {(str(tier),): stats.capacity_blocks * self._block_size for tier, stats in tiers.items()}
        yield make.gauges("tierscope_tier_capacity_tokens", "Tokens that the tier may hold.", label, tokens)
        for name, documentation, field in _TIER_COUNTERS:
            values = {(str(tier),): getattr(stats, field) for tier, stats in tiers.items()}
            yield make.counters(name, documentation, label, values)

    def _health(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        """Of the tiers that this engine has: an alert on 0 says nothing about one that was never asked for."""
        make, label = self._families, ["cache_tier"]
        tiers = {(str(tier),): stats.health for tier, stats in snapshot.cache.tiers.items() if stats.is_configured}
        yield make.gauges(
            "tierscope_tier_up",
            "Whether the tier can be read and written: 0 while its server is given up.",
            label,
            {tier: health.is_up for tier, health in tiers.items()},
        )
        yield make.counters(
            "tierscope_tier_given_up",
            "Times that the tier was given up because its server kept failing.",
            label,
            {tier: health.num_opened for tier, health in tiers.items()},
        )

    def _moves(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        tiers, make = snapshot.cache.tiers.items(), self._families
        evicted = {(str(tier), str(why)): count for tier, s in tiers for why, count in s.evicted_blocks.items()}
        failed = {(str(tier), str(op)): count for tier, s in tiers for op, count in s.errors.items()}
        yield make.counters(
            "tierscope_tier_evicted_blocks", "Blocks that left the tier, by why.", ["cache_tier", "reason"], evicted
        )
        yield make.counters("tierscope_tier_errors", "Copies that failed.", ["cache_tier", "op"], failed)

    def _recorded(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told = snapshot.counters.recording
        if told.is_on:
            yield self._families.counters(
                "tierscope_trace_requests",
                "Requests for the recorded trace; dropped where the disk failed or was too slow.",
                ["outcome"],
                {("recorded",): told.recorded, ("dropped",): told.dropped},
            )

    def _histograms(self, snapshot: "EngineSnapshot") -> Iterator[Metric]:
        told, make = snapshot.counters, self._families
        yield make.histograms(
            "tierscope_tier_load_seconds",
            "Seconds that a copy from the tier to a faster one took.",
            "cache_tier",
            {str(tier): stats.load_seconds for tier, stats in snapshot.cache.tiers.items()},
        )
        yield make.histograms(
            "tierscope_time_to_first_token_seconds",
            "Seconds from submission to the first token, by the slowest tier that the request read from.",
            "cache_tier",
            {str(tier): counts for tier, counts in told.ttft.items()},
        )
        yield make.histogram("tierscope_inter_token_latency_seconds", "Seconds between two tokens.", told.inter_token)
        yield make.histogram("tierscope_request_seconds", "Seconds from submission to the end.", told.request_seconds)


class Exposition:
    """One engine's registry and its text (Prometheus text format 0.0.4)."""

    def __init__(self, collector: EngineCollector) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(collector)

    def text(self) -> str:
        return generate_latest(self._registry).decode()
