"""Builds Prometheus families that share their first labels. Knows nothing about what is measured."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

# By the values of the labels; a Mapping is invariant in its keys, and a tuple of two strings is a tuple of strings.
Values = Mapping[Any, float]


class Counts(Protocol):
    """`counts[i]` observations ≤ `bounds[i]` and above the bound before; the last are those above every bound."""

    @property
    def bounds(self) -> Sequence[float]: ...
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def sum_seconds(self) -> float: ...


class Families:
    """Counters are named without `_total`: the format adds it."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)

    def counter(self, name: str, documentation: str, value: float) -> Metric:
        return self.counters(name, documentation, [], {(): value})

    def counters(self, name: str, documentation: str, labels: list[str], values: Values) -> Metric:
        return self._filled(CounterMetricFamily(name, documentation, labels=[*self._labels, *labels]), values)

    def gauge(self, name: str, documentation: str, value: float) -> Metric:
        return self.gauges(name, documentation, [], {(): value})

    def gauges(self, name: str, documentation: str, labels: list[str], values: Values) -> Metric:
        return self._filled(GaugeMetricFamily(name, documentation, labels=[*self._labels, *labels]), values)

    def histogram(self, name: str, documentation: str, counts: Counts) -> Metric:
        return self._histograms(name, documentation, [], {(): counts})

    def histograms(self, name: str, documentation: str, label: str, many: Mapping[str, Counts]) -> Metric:
        return self._histograms(name, documentation, [label], {(value,): counts for value, counts in many.items()})

    def _histograms(
        self, name: str, documentation: str, labels: list[str], many: Mapping[tuple[str, ...], Counts]
    ) -> Metric:
        family = HistogramMetricFamily(name, documentation, labels=[*self._labels, *labels])
        for values, counts in many.items():
            family.add_metric([*self._labels.values(), *values], cumulative(counts), counts.sum_seconds)
        return family

    def _filled(self, family: Any, values: Values) -> Metric:
        for extra, value in values.items():
            family.add_metric([*self._labels.values(), *extra], value)
        return family  # type: ignore[no-any-return] # of any kind of family


def cumulative(histogram: Counts) -> list[tuple[str, float]]:
    """Prometheus' buckets count everything up to their bound."""
    pairs, total = [], 0
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts, strict=True):
        total += count
        pairs.append((bound, float(total)))
    return pairs
