"""LMCache's two families of names.

Multi-process server: lmcache/v1/mp_observability/subscribers/metrics/lookup.py of 0.5.6 (OpenTelemetry names, dots made
underscores, units spliced in); a build or a moment without the split by level tells only both levels together.
In-process: lmcache/observability.py, whose `local_cache_usage` and its like are bytes.
"""

from dashboard.models import Source
from dashboard.sources.rules import CPU, DISK, GPU, REMOTE, UNATTRIBUTED, Adapter, Metric, Rule

_BY_LEVEL = ("lmcache_mp_lookup_hit_l1_tokens", "lmcache_mp_lookup_hit_l2_tokens")

LMCACHE_MP = Adapter(
    kind=Source.Kind.LMCACHE_MP,
    marks=("lmcache_mp_lookup_requested_tokens", "lmcache_mp_lookup_hit_tokens"),
    computed="unknown",
    note="LMCache counts whole chunks only and sees no gpu hits: its prompt tokens cannot be compared with vLLM's.",
    rules=(
        Rule("lmcache_mp_lookup_requested_tokens", Metric.PROMPT_TOKENS),
        Rule("lmcache_mp_lookup_hit_l1_tokens", Metric.HIT_TOKENS, CPU),
        Rule("lmcache_mp_lookup_hit_l2_tokens", Metric.HIT_TOKENS, UNATTRIBUTED),
        Rule("lmcache_mp_lookup_hit_tokens", Metric.HIT_TOKENS, UNATTRIBUTED, lacks=_BY_LEVEL),
        Rule("lmcache_mp_l1_memory_usage_bytes", Metric.USED_BYTES, CPU),
        Rule("lmcache_mp_l2_usage_bytes", Metric.USED_BYTES, UNATTRIBUTED),
    ),
)

LMCACHE = Adapter(
    kind=Source.Kind.LMCACHE,
    marks=("lmcache_num_prompt_tokens",),
    note="This build tells the tokens hit beyond the gpu tier, not in which tier they lay.",
    rules=(
        Rule("lmcache_num_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("lmcache_num_vllm_hit_tokens", Metric.HIT_TOKENS, GPU),
        Rule("lmcache_num_hit_tokens", Metric.HIT_TOKENS, UNATTRIBUTED),
        Rule("lmcache_local_cache_usage", Metric.USED_BYTES, CPU),
        Rule("lmcache_local_storage_usage", Metric.USED_BYTES, DISK),
        Rule("lmcache_remote_cache_usage", Metric.USED_BYTES, REMOTE),
    ),
)
