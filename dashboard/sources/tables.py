"""The tables: which names and labels of each engine kind mean which canonical counter. Knows nothing about storage.

Names are canonical (exposition.canonical_name): without `_total`, `_` for `:`. What a build does not tell is
unattributed, and a remainder is never booked to a tier.
"""

from dashboard.models import CacheTier, Source
from dashboard.sources.adapter import Adapter, FixedTier, Metric, Rule, TierLabel

GPU, CPU, DISK, REMOTE, UNATTRIBUTED = (FixedTier(tier) for tier in CacheTier.values)
_OWN_TIER = TierLabel("cache_tier", {tier: tier for tier in ("gpu", "cpu", "disk", "remote")})
_MICROSECONDS = 1_000_000  # seconds are stored as integers, too
_OWN_TTFT_TIER = TierLabel("cache_tier", {**_OWN_TIER.tiers, "none": ""})

TIERSCOPE = Adapter(
    kind=Source.Kind.TIERSCOPE,
    marks=("tierscope_prompt_tokens",),
    computed="told",
    rules=(
        Rule("tierscope_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("tierscope_cached_prompt_tokens", Metric.HIT_TOKENS, _OWN_TIER),
        Rule("tierscope_computed_prompt_tokens", Metric.COMPUTED_TOKENS),
        Rule("tierscope_generated_tokens", Metric.GENERATED_TOKENS),
        Rule("tierscope_requests", Metric.REQUESTS, detail_label="finish_reason"),
        Rule("tierscope_preemptions", Metric.PREEMPTIONS),
        Rule("tierscope_tier_capacity_bytes", Metric.CAPACITY_BYTES, _OWN_TIER),
        Rule("tierscope_tier_used_bytes", Metric.USED_BYTES, _OWN_TIER),
        Rule("tierscope_tier_resident_tokens", Metric.RESIDENT_TOKENS, _OWN_TIER),
        Rule("tierscope_tier_capacity_tokens", Metric.CAPACITY_TOKENS, _OWN_TIER),
        Rule("tierscope_tier_evicted_blocks", Metric.EVICTED_BLOCKS, _OWN_TIER, "reason"),
        Rule("tierscope_tier_loaded_bytes", Metric.LOADED_BYTES, _OWN_TIER),
        Rule("tierscope_tier_stored_bytes", Metric.STORED_BYTES, _OWN_TIER),
        Rule("tierscope_tier_loaded_blocks", Metric.LOADED_BLOCKS, _OWN_TIER),
        Rule("tierscope_tier_stored_blocks", Metric.STORED_BLOCKS, _OWN_TIER),
        Rule("tierscope_tier_load_seconds_bucket", Metric.LOAD_TIMES, _OWN_TIER, "le"),
        Rule("tierscope_tier_load_seconds_sum", Metric.LOAD_MICROSECONDS, _OWN_TIER, scale=_MICROSECONDS),
        Rule("tierscope_tier_store_seconds", Metric.STORE_MICROSECONDS, _OWN_TIER, scale=_MICROSECONDS),
        Rule("tierscope_tier_errors", Metric.TIER_ERRORS, _OWN_TIER, "op"),
        Rule("tierscope_tier_load_skipped_tokens", Metric.SKIPPED_TOKENS, _OWN_TIER),
        Rule("tierscope_tier_entered_tokens", Metric.ENTERED_TOKENS, _OWN_TIER, "origin"),
        Rule("tierscope_tier_left_tokens", Metric.LEFT_TOKENS, _OWN_TIER, "to"),
        Rule("tierscope_tier_missed_after_eviction_tokens", Metric.MISSED_TOKENS, _OWN_TIER),
        Rule("tierscope_tier_up", Metric.UP, _OWN_TIER),
        Rule("tierscope_tier_given_up", Metric.GIVEN_UP, _OWN_TIER),
        Rule("tierscope_tenant_prompt_tokens", Metric.TENANT_PROMPT_TOKENS, detail_label="tenant"),
        Rule("tierscope_tenant_computed_prompt_tokens", Metric.TENANT_COMPUTED_TOKENS, detail_label="tenant"),
        Rule("tierscope_tenant_cached_prompt_tokens", Metric.TENANT_HIT_TOKENS, _OWN_TIER, "tenant"),
        Rule("tierscope_prefill_tokens", Metric.PREFILL_TOKENS),
        Rule("tierscope_prefill_seconds", Metric.PREFILL_MICROSECONDS, scale=_MICROSECONDS),
        Rule("tierscope_time_to_first_token_seconds_bucket", Metric.TTFT, _OWN_TTFT_TIER, "le"),
    ),
)

_VLLM_SOURCE = TierLabel(
    "source",
    {"device": CacheTier.GPU, "host": CacheTier.CPU, "disk": CacheTier.DISK, "p2p": CacheTier.REMOTE},
)  # external_unspecified: the connector did not say
_VLLM_COMMON = (
    Rule("vllm_generation_tokens", Metric.GENERATED_TOKENS),
    Rule("vllm_request_success", Metric.REQUESTS, detail_label="finished_reason"),
    Rule("vllm_num_preemptions", Metric.PREEMPTIONS),
    Rule("vllm_time_to_first_token_seconds_bucket", Metric.TTFT, UNATTRIBUTED, "le"),
)

VLLM = Adapter(
    kind=Source.Kind.VLLM,
    marks=("vllm_prompt_tokens_cached_by_source",),
    computed="told",
    rules=(
        Rule("vllm_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("vllm_prompt_tokens_cached_by_source", Metric.HIT_TOKENS, _VLLM_SOURCE),
        Rule("vllm_prompt_tokens_by_source", Metric.COMPUTED_TOKENS, where=(("source", "local_compute"),)),
        *_VLLM_COMMON,
    ),
)

VLLM_OLD = Adapter(
    kind=Source.Kind.VLLM_OLD,
    marks=("vllm_prefix_cache_queries",),
    note="This build tells the tokens hit beyond the gpu tier, not in which tier they lay.",
    rules=(
        Rule("vllm_prefix_cache_queries", Metric.PROMPT_TOKENS),
        Rule("vllm_prefix_cache_hits", Metric.HIT_TOKENS, GPU),
        Rule("vllm_external_prefix_cache_hits", Metric.HIT_TOKENS, UNATTRIBUTED),
        *_VLLM_COMMON,
    ),
)

SGLANG = Adapter(
    kind=Source.Kind.SGLANG,
    marks=("sglang_*",),
    engine_labels=("engine", "dp_rank"),
    note="A source appears with its first hit; cache_source=total tells no tier.",
    rules=(
        Rule("sglang_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule(
            "sglang_cached_tokens",
            Metric.HIT_TOKENS,
            TierLabel(
                "cache_source",
                {
                    "device": CacheTier.GPU,
                    "host": CacheTier.CPU,
                    "storage_HiCacheFile": CacheTier.DISK,
                    "storage_MooncakeStore": CacheTier.REMOTE,
                    "storage_EICStorage": CacheTier.REMOTE,
                    "storage_HiCacheHF3FS": CacheTier.REMOTE,
                },
            ),
        ),
        Rule("sglang_generation_tokens", Metric.GENERATED_TOKENS),
        Rule("sglang_time_to_first_token_seconds_bucket", Metric.TTFT, UNATTRIBUTED, "le"),
        Rule("sglang_hicache_host_used_tokens", Metric.RESIDENT_TOKENS, CPU),
        Rule("sglang_hicache_host_total_tokens", Metric.CAPACITY_TOKENS, CPU),
        Rule("sglang_max_total_num_tokens", Metric.CAPACITY_TOKENS, GPU),
    ),
)

LMCACHE_MP = Adapter(
    kind=Source.Kind.LMCACHE_MP,
    marks=("lmcache_mp_lookup_requested_tokens",),
    computed="unknown",
    note="LMCache counts whole chunks only and sees no gpu hits: its prompt tokens cannot be compared with vLLM's.",
    rules=(
        Rule("lmcache_mp_lookup_requested_tokens", Metric.PROMPT_TOKENS),
        Rule("lmcache_mp_lookup_hit_l1_tokens", Metric.HIT_TOKENS, CPU),
        Rule("lmcache_mp_lookup_hit_l2_tokens", Metric.HIT_TOKENS, UNATTRIBUTED),
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
    ),
)

KVBM = Adapter(
    kind=Source.Kind.KVBM,
    marks=("kvbm_matched_tokens", "dynamo_kvbm_matched_tokens"),
    computed="unknown",
    note="KVBM tells matched tokens, not in which tier they lay, and not every build tells the tokens asked for.",
    rules=tuple(
        rule
        for prefix in ("kvbm", "dynamo_kvbm")
        for rule in (
            Rule(f"{prefix}_requested_tokens", Metric.PROMPT_TOKENS),
            Rule(f"{prefix}_matched_tokens", Metric.HIT_TOKENS, UNATTRIBUTED),
        )
    ),
)

TRTLLM = Adapter(
    kind=Source.Kind.TRTLLM,
    marks=("trtllm_*",),
    rules=(
        Rule("trtllm_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule(
            "trtllm_prompt_cached_tokens",
            Metric.HIT_TOKENS,
            TierLabel("cache_tier", {**_OWN_TIER.tiers, "host": CacheTier.CPU}),
        ),
    ),
)

# First match wins: our own text also speaks vLLM's names, and a vLLM with LMCache inside tells both.
DETECTION_ORDER = (TIERSCOPE, VLLM, VLLM_OLD, SGLANG, TRTLLM, LMCACHE_MP, LMCACHE, KVBM)
ADAPTERS = {str(adapter.kind): adapter for adapter in DETECTION_ORDER}
