"""The embedded engines' own names, and another Tierscope's. They are ours: dashboard/engine_metrics.py."""

from dashboard.models import Source
from dashboard.sources.rules import Adapter, Metric, Rule, TierLabel

_OWN_TIER = TierLabel("cache_tier", {tier: tier for tier in ("gpu", "cpu", "disk", "remote")})
_MICROSECONDS = 1_000_000  # seconds are stored as integers, too
_PER_MILLION = 1_000_000  # shares, too
_OWN_TTFT_TIER = TierLabel("cache_tier", {**_OWN_TIER.tiers, "none": ""})

TIERSCOPE = Adapter(
    kind=Source.Kind.TIERSCOPE,
    marks=("tierscope_prompt_tokens",),
    computed="unknown",  # unless told: of watched engines on its /metrics it may know less than all hits
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
        Rule("tierscope_reuse_tokens", Metric.REUSE_TOKENS, detail_label="capacity_tokens"),
        Rule(
            "tierscope_tenant_reuse_tokens",
            Metric.TENANT_REUSE_TOKENS,
            detail_label="capacity_tokens",
            whose_label="tenant",
        ),
        Rule("tierscope_reuse_sample_ratio", Metric.REUSE_SAMPLE_PPM, scale=_PER_MILLION),
        Rule("tierscope_prefill_tokens", Metric.PREFILL_TOKENS),
        Rule("tierscope_prefill_seconds", Metric.PREFILL_MICROSECONDS, scale=_MICROSECONDS),
        Rule("tierscope_time_to_first_token_seconds_bucket", Metric.TTFT, _OWN_TTFT_TIER, "le"),
        Rule(
            "tierscope_time_to_first_token_seconds_sum", Metric.TTFT_MICROSECONDS, _OWN_TTFT_TIER, scale=_MICROSECONDS
        ),
    ),
)
