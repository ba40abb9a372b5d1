"""NVIDIA Dynamo's KV block manager.

From docs/components/kvbm of ai-dynamo/dynamo (its list of metrics, port 6880); its Grafana dashboard asks for the same
with `dynamo_` in front. A denominator was asked for in issue 4840 as `kvbm_requested_tokens`; builds without it give no
rate. The `*_cache_hit_rate` gauges are windows of 1,000 requests (pull request 4333): they are never summed.
"""

from dashboard.models import Source
from dashboard.sources.rules import UNATTRIBUTED, Adapter, Metric, Rule

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
