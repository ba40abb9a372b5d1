"""Watched engines under our own names on /metrics, where that is asked for: one job of Prometheus sees a mixed fleet.

Counters are as the engine told them last, with its restarts; of an engine that is not read now there are none.
"""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from dashboard.models import Series
from dashboard.selectors.watched_counters import watched

_LABELS = ["engine", "model_name"]
# Name and words are those of the embedded engines (engine_metrics.py): both are one family.
_FAMILIES = {
    Series.Metric.PROMPT_TOKENS: ("tierscope_prompt_tokens", "Prompt tokens of admitted requests."),
    Series.Metric.HIT_TOKENS: ("tierscope_cached_prompt_tokens", "Prompt tokens that were reused, by tier."),
    Series.Metric.COMPUTED_TOKENS: ("tierscope_computed_prompt_tokens", "Prompt tokens that were computed."),
    Series.Metric.GENERATED_TOKENS: ("tierscope_generated_tokens", "Tokens generated."),
}


def watched_families(now: datetime) -> Iterator[Metric]:
    told = watched(now)
    for metric, (name, documentation) in _FAMILIES.items():
        has_tier = metric == Series.Metric.HIT_TOKENS
        family = CounterMetricFamily(name, documentation, labels=[*_LABELS, *(["cache_tier"] if has_tier else [])])
        for counter in told.counters:
            if counter.metric == metric:
                tier = [counter.cache_tier] if has_tier else []
                family.add_metric([counter.engine, counter.model_name, *tier], counter.value)
        yield family
    up = GaugeMetricFamily("tierscope_source_up", "1 where a watched source was read lately.", labels=["source"])
    for name, is_up in told.is_up.items():
        up.add_metric([name], int(is_up))
    yield up
