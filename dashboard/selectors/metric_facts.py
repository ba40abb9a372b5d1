"""What each stored metric counts, and in what. Knows no numbers.

Whoever reads series by a program has to know the unit, whether values add up, and what `detail` tells apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import Series

Metric = Series.Metric
_TENANT = "tenant"


@dataclass(frozen=True)
class MetricFacts:
    """`detail` is what the detail of its series is called; "" where they have none. A gauge's values do not add up
    over time: its value in a step is the mean of what was read.
    """

    unit: str
    has_tier: bool = False
    detail: str = ""
    is_gauge: bool = False

    @property
    def is_by_tenant(self) -> bool:
        return self.detail == _TENANT


def _by_tier(unit: str, detail: str = "") -> MetricFacts:
    return MetricFacts(unit, has_tier=True, detail=detail)


def _gauge(unit: str) -> MetricFacts:
    return MetricFacts(unit, has_tier=True, is_gauge=True)


METRIC_FACTS: Mapping[str, MetricFacts] = {
    Metric.SCRAPES: MetricFacts("observations"),
    Metric.PROMPT_TOKENS: MetricFacts("tokens"),
    Metric.COMPUTED_TOKENS: MetricFacts("tokens"),
    Metric.HIT_TOKENS: _by_tier("tokens"),
    Metric.GENERATED_TOKENS: MetricFacts("tokens"),
    Metric.REQUESTS: MetricFacts("requests", detail="finish_reason"),
    Metric.PREEMPTIONS: MetricFacts("preemptions"),
    Metric.RESIDENT_TOKENS: _gauge("tokens"),
    Metric.CAPACITY_TOKENS: _gauge("tokens"),
    Metric.USED_BYTES: _gauge("bytes"),
    Metric.CAPACITY_BYTES: _gauge("bytes"),
    Metric.EVICTED_BLOCKS: _by_tier("blocks", "reason"),
    Metric.LOADED_BYTES: _by_tier("bytes"),
    Metric.STORED_BYTES: _by_tier("bytes"),
    Metric.LOADED_BLOCKS: _by_tier("blocks"),
    Metric.STORED_BLOCKS: _by_tier("blocks"),
    Metric.LOAD_TIMES: _by_tier("loads", "upper bound in seconds"),
    Metric.LOAD_MICROSECONDS: _by_tier("microseconds"),
    Metric.STORE_MICROSECONDS: _by_tier("microseconds"),
    Metric.TIER_ERRORS: _by_tier("failed copies", "operation"),
    Metric.SKIPPED_TOKENS: _by_tier("tokens"),
    Metric.ENTERED_TOKENS: _by_tier("tokens", "origin"),
    Metric.LEFT_TOKENS: _by_tier("tokens", "destination"),
    Metric.MISSED_TOKENS: _by_tier("tokens"),
    Metric.UP: _gauge("1 while the tier can be read and written"),
    Metric.GIVEN_UP: _by_tier("times"),
    Metric.TENANT_PROMPT_TOKENS: MetricFacts("tokens", detail=_TENANT),
    Metric.TENANT_COMPUTED_TOKENS: MetricFacts("tokens", detail=_TENANT),
    Metric.TENANT_HIT_TOKENS: _by_tier("tokens", _TENANT),
    Metric.PREFILL_TOKENS: MetricFacts("tokens"),
    Metric.PREFILL_MICROSECONDS: MetricFacts("microseconds"),
    Metric.TTFT: _by_tier("requests", "upper bound in seconds"),
    Metric.TTFT_MICROSECONDS: _by_tier("microseconds"),
    Metric.REUSE_TOKENS: MetricFacts("tokens", detail="capacity in tokens"),
    Metric.TENANT_REUSE_TOKENS: MetricFacts("tokens", detail="capacity in tokens, and tenant"),
    Metric.REUSE_SAMPLE_PPM: MetricFacts("parts per million", is_gauge=True),
    Metric.REUSE_GAPS: _by_tier("uses of a block", "upper bound in seconds"),
    Metric.IDLE_BLOCKS: _by_tier("blocks"),
    Metric.IDLE_MICROSECONDS: _by_tier("microseconds"),
}
