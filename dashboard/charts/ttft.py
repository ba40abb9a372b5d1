"""Time to first token by the slowest tier a request read from: what each tier's hits are worth, in seconds."""

from typing import Any

from dashboard.charts.palette import NO_TIER, TIER_ORDER
from dashboard.charts.parts import Figure, layout, milliseconds
from dashboard.charts.percentiles import percentile_lines, seconds_axis

# Powers of ten with 2 and 5 between: a cold prompt takes 50 times as long as a warm one, which a linear axis hides.
_TICKS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]


def ttft_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `ttft_series` returns it: `{"starts", "tiers": {tier or "none": {"p50", "p95"}}}`, seconds."""
    starts = series["starts"]
    x = [start + step_seconds * 500 for start in milliseconds(starts)]
    tiers = [*TIER_ORDER, NO_TIER]
    traces = percentile_lines(tiers, series["tiers"], x, least_seconds=0.0001, digits=4)
    return {"data": traces, "layout": layout(starts, step_seconds, yaxis=seconds_axis(_TICKS, traces))}
