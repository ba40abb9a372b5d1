"""How long the load of one block out of each tier took: what a hit there costs, block by block."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import tiers_in
from dashboard.charts.parts import Figure, layout, milliseconds
from dashboard.charts.percentiles import percentile_lines, seconds_axis

# From memory it takes 0.1 ms, from a busy server 1,000 times as long, which a linear axis hides.
_TICKS = [0.00001, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]


def load_times_figure(series: dict[str, Any], starts: Sequence[int], step_seconds: int) -> Figure:
    """Args: `series` as `load_times_series` returns it; its steps may be longer than those of the period's charts."""
    x = [start + series["step_seconds"] * 500 for start in milliseconds(series["starts"])]
    traces = percentile_lines(tiers_in(series["tiers"]), series["tiers"], x, least_seconds=0.00001, digits=6)
    return {"data": traces, "layout": layout(starts, step_seconds, yaxis=seconds_axis(_TICKS, traces))}
