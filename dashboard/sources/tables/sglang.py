"""SGLang's names, with HiCache.

From python/sglang/srt/observability/metrics_collector.py of 0.5.23 (`observe_one_finished_request` labels hits by
source; older builds, python/sglang/srt/metrics/collector.py, do not: unattributed) and
docs/advanced_features/hicache_design.md.
A storage backend is told by its class: a file system is a disk, shared stores are remote, others are not guessed.
"""

from dashboard.models import CacheTier, Source
from dashboard.sources.rules import CPU, GPU, UNATTRIBUTED, Adapter, Metric, Rule, TierLabel

_SOURCE = TierLabel(
    "cache_source",
    {
        "device": CacheTier.GPU,
        "host": CacheTier.CPU,
        "storage_HiCacheFile": CacheTier.DISK,
        "storage_MooncakeStore": CacheTier.REMOTE,
        "storage_EICStorage": CacheTier.REMOTE,
        "storage_HiCacheHF3FS": CacheTier.REMOTE,
    },
)
_RANKS = ("tp_rank", "pp_rank", "pid")  # each holds its share of the heads of the same tokens

SGLANG = Adapter(
    kind=Source.Kind.SGLANG,
    marks=("sglang_*",),
    note="A source appears with its first hit; cache_source=total tells no tier.",
    rules=(
        Rule("sglang_prompt_tokens", Metric.PROMPT_TOKENS),
        Rule("sglang_cached_tokens", Metric.HIT_TOKENS, _SOURCE),
        Rule("sglang_generation_tokens", Metric.GENERATED_TOKENS),
        Rule("sglang_time_to_first_token_seconds_bucket", Metric.TTFT, UNATTRIBUTED, "le"),
        Rule("sglang_time_to_first_token_seconds_sum", Metric.TTFT_MICROSECONDS, UNATTRIBUTED, scale=1_000_000),
        Rule("sglang_hicache_host_used_tokens", Metric.RESIDENT_TOKENS, CPU, same=_RANKS),
        Rule("sglang_hicache_host_total_tokens", Metric.CAPACITY_TOKENS, CPU, same=_RANKS),
        Rule("sglang_max_total_num_tokens", Metric.CAPACITY_TOKENS, GPU, same=_RANKS),
    ),
)
