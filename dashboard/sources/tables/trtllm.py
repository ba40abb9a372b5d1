"""TensorRT-LLM's names.

From tensorrt_llm/metrics/collector.py: one counter of cached prompt tokens, without a tier; with `cache_tier` in the
proposal of issue 18465. Dynamo passes the same names on. `kv_cache_hit_rate` is a gauge: not read.
"""

from dashboard.models import CacheTier, Source
from dashboard.sources.rules import UNATTRIBUTED, Adapter, Metric, Rule, TierLabel

_TIER = TierLabel(
    "cache_tier",
    {
        "gpu": CacheTier.GPU,
        "host": CacheTier.CPU,
        "cpu": CacheTier.CPU,
        "disk": CacheTier.DISK,
        "remote": CacheTier.REMOTE,
    },
)

TRTLLM = Adapter(
    kind=Source.Kind.TRTLLM,
    marks=("trtllm_*",),
    note="Builds that do not name the tier of cached tokens leave all of them unattributed.",
    rules=(
        Rule("trtllm_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("trtllm_prompt_cached_tokens", Metric.HIT_TOKENS, _TIER),
        Rule("trtllm_request_success", Metric.REQUESTS, detail_label="finished_reason"),
        Rule("trtllm_time_to_first_token_seconds_bucket", Metric.TTFT, UNATTRIBUTED, "le"),
        Rule("trtllm_time_to_first_token_seconds_sum", Metric.TTFT_MICROSECONDS, UNATTRIBUTED, scale=1_000_000),
    ),
)
