"""Every chart over time: what it reads, how it is drawn, and how it is written down. One entry a chart."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboard import charts
from dashboard.charts.parts import Figure
from dashboard.exports import series as tables
from dashboard.exports.table import Table
from dashboard.selectors import latency, residency, tenants, tier_series, tokens
from dashboard.selectors.period import Period
from dashboard.views.params import Query

Series = dict[str, Any]


@dataclass(frozen=True)
class TimeChart:
    """`read` takes a period and the filters; `draw` the present moment, too, for the bar that is still filling."""

    read: Callable[..., Series]
    draw: Callable[[Series, Period, float], Figure]
    tabulate: Callable[[Series, int], Table]

    def series(self, period: Period, query: Query) -> Series:
        return self.read(period, engine=query.engine, model_name=query.model_name)

    def figure(self, period: Period, query: Query, now: float) -> Figure:
        return self.draw(self.series(period, query), period, now)

    def table(self, period: Period, query: Query) -> Table:
        return self.tabulate(self.series(period, query), period.step_seconds)


_RESIDENCY = {"resident": "resident_tokens", "capacity": "capacity_tokens"}
_COPIED = {"loaded": "loaded_bytes", "stored": "stored_bytes"}
_FAILED = {"load": "failed_loads", "store": "failed_stores"}


def _now(figure: Callable[[Series, int, float], Figure]) -> Callable[[Series, Period, float], Figure]:
    return lambda series, period, now: figure(series, period.step_seconds, now)


def _timeless(figure: Callable[[Series, int], Figure]) -> Callable[[Series, Period, float], Figure]:
    return lambda series, period, now: figure(series, period.step_seconds)


TIME_CHARTS: dict[str, TimeChart] = {
    "tokens": TimeChart(tokens.token_series, _now(charts.tokens_figure), tables.tokens_table),
    "hit-rate": TimeChart(tokens.hit_rate_series, _timeless(charts.hit_rate_figure), tables.hit_rate_table),
    "residency": TimeChart(
        residency.residency_series,
        _timeless(charts.residency_figure),
        lambda series, step: tables.by_tier_table(series, step, _RESIDENCY),
    ),
    "ttft": TimeChart(
        latency.ttft_series,
        _timeless(charts.ttft_figure),
        lambda series, step: tables.quantiles_table(series, step, "requests"),
    ),
    "bandwidth": TimeChart(
        tier_series.copied_bytes_series,
        _now(charts.bandwidth_figure),
        lambda series, step: tables.by_tier_table(series, step, _COPIED),
    ),
    "load-times": TimeChart(
        tier_series.load_times_series,
        lambda series, period, now: charts.load_times_figure(series, period.starts, period.step_seconds),
        lambda series, step: tables.quantiles_table(series, step, "loads"),
    ),
    "failures": TimeChart(
        tier_series.failures_series,
        _now(charts.failures_figure),
        lambda series, step: tables.by_tier_table(series, step, _FAILED),
    ),
    "skipped": TimeChart(tier_series.skipped_series, _now(charts.skipped_figure), tables.skipped_table),
    "tenant-tokens": TimeChart(
        tenants.tenant_series,
        lambda series, period, now: charts.tenant_tokens_figure(series, now),
        tables.tenants_table,
    ),
    "tenant-hit-rate": TimeChart(
        tenants.tenant_series,
        lambda series, period, now: charts.tenant_hit_rate_figure(series, now),
        tables.tenants_table,
    ),
}
