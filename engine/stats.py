"""The engine's counters: plain integers that only grow, and frozen copies of them. Rates are the reader's work.

Knows nothing about Prometheus. A failure in here is logged and never reaches a request.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from engine.recording import NoRecording, RecordCounts, Recording
from engine.request import FINISH_REASONS, FinishReason
from engine.reuse import NoReuse, Reuse
from engine.room import Floor
from engine.sequence import Sequence
from engine.tenants import TenantCounts, Tenants
from tiers import TIERS, BlockKey, CacheStats, Tier
from tiers.whatif.shards_buckets import ReuseCounts

log = logging.getLogger(__name__)

# vLLM's bucket bounds, so that its dashboards draw the same quantiles.
TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
INTER_TOKEN_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_BOUNDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
NO_TIER = "none"
# A hit saves what many tokens more in a step cost. What a step costs however few they are (a decode's time: as much as
# 15 to 25 more tokens) is paid with a hit, too: short steps would make computing look two or three times as dear.
MIN_PREFILL_TOKENS = 64


@dataclass(frozen=True)
class HistogramCounts:
    """`counts[i]` observations ≤ `bounds[i]` and above the bound before; the last count is those above every bound."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum_seconds: float

    @property
    def count(self) -> int:
        return sum(self.counts)


class Histogram:
    """Counts of observed seconds by bucket."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def counts(self) -> HistogramCounts:
        return HistogramCounts(self._bounds, tuple(self._counts), self._sum)


@dataclass(frozen=True)
class EngineCounters:
    """What happened since the engine started. At any moment `prompt_tokens == sum(hit_tokens) + computed_tokens`.

    `load_skipped_tokens` of the computed ones lay in a tier, but were cheaper to compute. Computing `prefill_tokens`
    took `prefill_seconds`, both in steps of MIN_PREFILL_TOKENS or more. Queries and hits are tokens of requests that
    use the cache: `prefix_cache_*` looks at gpu, `external_*` at what gpu did not have. `ttft` is by the slowest tier
    that the request read from, or "none". `tenants` split prompt, hit and computed tokens, `reuse` prompt tokens by the
    capacity that would have served them, and `tenant_reuse` those of each tenant; `recording` are requests.
    """

    prompt_tokens: int
    hit_tokens: Mapping[Tier, int]
    computed_tokens: int
    tenants: Mapping[str, TenantCounts]
    load_skipped_tokens: Mapping[Tier, int]
    prefill_tokens: int
    prefill_seconds: float
    generated_tokens: int
    requests: Mapping[FinishReason, int]
    preemptions: int
    prefix_cache_queries: int
    prefix_cache_hits: int
    external_queries: int
    external_hits: int
    ttft: Mapping[str, HistogramCounts]
    inter_token: HistogramCounts
    request_seconds: HistogramCounts
    reuse: ReuseCounts
    tenant_reuse: Mapping[str, ReuseCounts]
    recording: RecordCounts

    def check(self) -> None:
        hits = sum(self.hit_tokens.values())
        reused = sum(self.reuse.tokens)
        assert reused == self.prompt_tokens or not self.reuse.bounds, "the reuse curve has not all prompt tokens"
        assert self.prompt_tokens == hits + self.computed_tokens, "prompt tokens are not hits plus computed tokens"
        self._check_tenants()
        assert hits == self.prefix_cache_hits + self.external_hits, "hits by tier are not local plus external hits"
        assert self.external_queries == self.prefix_cache_queries - self.prefix_cache_hits, (
            "external queries are not what the gpu tier missed"
        )
        assert sum(self.load_skipped_tokens.values()) <= self.computed_tokens, "more was skipped than computed"
        assert self.prefix_cache_queries <= self.prompt_tokens, "more tokens were queried than prompted"
        assert hits <= self.prefix_cache_queries, "more tokens were hit than queried"

    def _check_tenants(self) -> None:
        counts = self.tenants.values()
        for tier, tokens in self.hit_tokens.items():
            assert tokens == sum(each.hit_tokens[tier] for each in counts), f"the tenants' {tier} hits are not all"
        assert self.computed_tokens == sum(each.computed_tokens for each in counts), "computed tokens without tenant"
        assert self.prompt_tokens == sum(each.prompt_tokens for each in counts), "prompt tokens without a tenant"
        for name, told in self.tenant_reuse.items():
            assert sum(told.tokens) == self.tenants[name].prompt_tokens, f"the reuse curve of {name} is not all its own"


@dataclass(frozen=True)
class EngineSnapshot:
    """One consistent look at an engine, taken between two changes of its state."""

    counters: EngineCounters
    cache: CacheStats
    num_running: int
    num_waiting: int
    gpu_floor: Floor


P = ParamSpec("P")
Method = Callable[Concatenate["EngineStats", P], None]


def _never_fails(method: Method[P]) -> Method[P]:
    def guarded(self: "EngineStats", /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception:
            log.exception("measuring failed in %s; the request goes on", method.__name__)

    return guarded


class EngineStats:
    """Collects what happens, event by event, on the stepping thread."""

    def __init__(self, tenants: Tenants, reuse: Reuse | None = None, recording: Recording | None = None) -> None:
        self._tenants = tenants
        self.reuse = reuse or NoReuse()
        self._recording = recording or NoRecording()
        self._prompt_tokens = self._computed_tokens = self._generated_tokens = 0
        self._preemptions = self._queries = 0
        self._prefill_tokens, self._prefill_seconds = 0, 0.0
        self._hit_tokens = dict.fromkeys(TIERS, 0)
        self._load_skipped = dict.fromkeys(TIERS, 0)
        self._requests: dict[FinishReason, int] = dict.fromkeys(FINISH_REASONS, 0)
        self._ttft = {name: Histogram(TTFT_BOUNDS) for name in (NO_TIER, *TIERS)}
        self._inter_token = Histogram(INTER_TOKEN_BOUNDS)
        self._request_seconds = Histogram(REQUEST_BOUNDS)

    @_never_fails
    def admitted(self, sequence: Sequence) -> None:
        """Prompt, hit and computed tokens move together, so that no reader ever sees one without the others."""
        admission = sequence.admission
        assert admission is not None
        hit_tokens, computed_tokens = admission.hit_tokens, admission.computed_tokens
        self._tenants.admitted(sequence.request.tenant, admission)
        self._prompt_tokens += admission.prompt_tokens
        self._computed_tokens += computed_tokens
        self._queries += admission.prompt_tokens if sequence.uses_cache else 0
        for tier, tokens in hit_tokens.items():
            self._hit_tokens[tier] += tokens
        for tier in admission.skipped_tiers:
            self._load_skipped[tier] += admission.block_size

    @_never_fails
    def asked(self, sequence: Sequence) -> None:
        """The same request, for the reuse curve; a call of its own, so that a failure of one costs not both."""
        self.reuse.admitted(sequence, self._tenants.name_of(sequence.request.tenant))

    @_never_fails
    def begun(self, sequence: Sequence) -> None:
        """The same request, for the recorder."""
        self._recording.admitted(sequence)

    @_never_fails
    def ended(self, sequence: Sequence) -> None:
        """Called while the sequence still knows what it had; also for one that was never admitted."""
        self._recording.ended(sequence)

    @_never_fails
    def filled(self, keys: list[BlockKey]) -> None:
        self.reuse.filled(keys)

    @_never_fails
    def given_back(self, sequence: Sequence) -> None:
        """Called while the sequence still knows what it had."""
        self.reuse.given_back(sequence)

    @_never_fails
    def ran(self, num_prefill: int, num_tokens: int, seconds: float) -> None:
        """A step computed `num_prefill` tokens of prompts among `num_tokens`; its seconds are shared by tokens."""
        if num_prefill >= MIN_PREFILL_TOKENS:
            self._prefill_tokens += num_prefill
            self._prefill_seconds += seconds * num_prefill / num_tokens

    @_never_fails
    def token(self, sequence: Sequence, now: float) -> None:
        """A token was sampled; called before the sequence takes it."""
        self._generated_tokens += 1
        if sequence.last_token_at is not None:
            self._inter_token.observe(now - sequence.last_token_at)
        elif sequence.admission is not None:
            slowest = sequence.admission.slowest_tier
            self._ttft[slowest or NO_TIER].observe(now - sequence.submitted_at)

    @_never_fails
    def preempted(self) -> None:
        self._preemptions += 1

    @_never_fails
    def finished(self, sequence: Sequence, reason: FinishReason, now: float) -> None:
        self._requests[reason] += 1
        self._request_seconds.observe(now - sequence.submitted_at)

    def counters(self) -> EngineCounters:
        tenants = self._tenants.counts()
        hits = sum(self._hit_tokens.values())
        gpu_hits = self._hit_tokens[Tier.GPU]
        return EngineCounters(
            prompt_tokens=self._prompt_tokens,
            hit_tokens=dict(self._hit_tokens),
            computed_tokens=self._computed_tokens,
            tenants=tenants,
            load_skipped_tokens=dict(self._load_skipped),
            prefill_tokens=self._prefill_tokens,
            prefill_seconds=self._prefill_seconds,
            generated_tokens=self._generated_tokens,
            requests=dict(self._requests),
            preemptions=self._preemptions,
            prefix_cache_queries=self._queries,
            prefix_cache_hits=gpu_hits,
            external_queries=self._queries - gpu_hits,
            external_hits=hits - gpu_hits,
            ttft={name: histogram.counts() for name, histogram in self._ttft.items()},
            inter_token=self._inter_token.counts(),
            request_seconds=self._request_seconds.counts(),
            reuse=self.reuse.counts(),
            tenant_reuse=self.reuse.tenant_counts(tenants),
            recording=self._recording.counts(),
        )
