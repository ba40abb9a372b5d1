"""vLLM's names, also as Ray Serve tells them (`ray_vllm_…`).

From vllm/v1/metrics/loggers.py of 0.32.0 and its own /metrics (tests/dashboard/expositions): the counter by source came
with pull request 56318, its values from vllm/v1/metrics/cache_hit_source.py; `cache_config_info` has the size of the
cache in its labels. Ray's labels: the dashboards of ray-project/ray (`_VLLM_FILTER`, WorkerId, ReplicaId). Not read:
`vllm:gpu_prefix_cache_*` (renamed in 2025), and `kv_offload_cpu_cache_usage_perc`, which is what transfers pin.
"""

from dashboard.models import CacheTier, Source
from dashboard.sources.rules import GPU, UNATTRIBUTED, Adapter, Metric, Rule, TierLabel

_SOURCE = TierLabel(
    "source",
    {"device": CacheTier.GPU, "host": CacheTier.CPU, "disk": CacheTier.DISK, "p2p": CacheTier.REMOTE},
)  # external_unspecified: the connector did not say
_COMMON = (
    Rule("vllm_generation_tokens", Metric.GENERATED_TOKENS),
    Rule("vllm_request_success", Metric.REQUESTS, detail_label="finished_reason"),
    Rule("vllm_num_preemptions", Metric.PREEMPTIONS),
    Rule("vllm_time_to_first_token_seconds_bucket", Metric.TTFT, UNATTRIBUTED, "le"),
    Rule("vllm_time_to_first_token_seconds_sum", Metric.TTFT_MICROSECONDS, UNATTRIBUTED, scale=1_000_000),
    # With --kv-cache-metrics, of evicted blocks only, one of a hundred (vllm/v1/core/kv_cache_metrics.py).
    Rule("vllm_kv_block_reuse_gap_seconds_bucket", Metric.REUSE_GAPS, GPU, "le"),
    Rule("vllm_kv_block_idle_before_evict_seconds_count", Metric.IDLE_BLOCKS, GPU),
    Rule("vllm_kv_block_idle_before_evict_seconds_sum", Metric.IDLE_MICROSECONDS, GPU, scale=1_000_000),
    Rule("vllm_cache_config_info", Metric.CAPACITY_TOKENS, GPU, value_label="kv_cache_size_tokens"),
    Rule("vllm_cache_config_info", Metric.CAPACITY_BYTES, GPU, value_label="kv_cache_memory_bytes"),
)
# A node's replicas share Ray's endpoint, each with an engine "0"; one that goes must not look like a restart of all.
_ENGINE = ("ReplicaId", "WorkerId", "engine")

VLLM = Adapter(
    kind=Source.Kind.VLLM,
    marks=("vllm_prompt_tokens_cached_by_source",),
    computed="told",
    engine_labels=_ENGINE,
    rules=(
        Rule("vllm_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("vllm_prompt_tokens_cached_by_source", Metric.HIT_TOKENS, _SOURCE),
        Rule("vllm_prompt_tokens_by_source", Metric.COMPUTED_TOKENS, where=(("source", "local_compute"),)),
        *_COMMON,
    ),
)

VLLM_OLD = Adapter(
    kind=Source.Kind.VLLM_OLD,
    marks=("vllm_prefix_cache_queries",),
    engine_labels=_ENGINE,
    note="This build tells the tokens hit beyond the gpu tier, not in which tier they lay.",
    note_of=("vllm_external_prefix_cache_hits",),
    rules=(
        Rule("vllm_prefix_cache_queries", Metric.PROMPT_TOKENS),
        Rule("vllm_prefix_cache_hits", Metric.HIT_TOKENS, GPU),
        Rule("vllm_external_prefix_cache_hits", Metric.HIT_TOKENS, UNATTRIBUTED),
        *_COMMON,
    ),
)
