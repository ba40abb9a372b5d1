"""How long the load of one block out of each tier took: what a hit there costs, block by block."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, Number, Values, layout, line, milliseconds
from dashboard.charts.words import duration

# From memory it takes 0.1 ms, from a busy server 1,000 times as long, which a linear axis hides.
_TICKS = [0.00001, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
_LEAST_SECONDS = 0.00001


def load_times_figure(series: dict[str, Any], starts: Sequence[int], step_seconds: int) -> Figure:
    """Args: `series` as `load_times_series` returns it; its steps may be longer than those of the period's charts."""
    x = [start + series["step_seconds"] * 500 for start in milliseconds(series["starts"])]
    traces: list[dict[str, Any]] = []
    for tier in tiers_in(series["tiers"]):
        if any(value is not None for value in series["tiers"][tier]["p50"]):
            traces += _pair(tier, x, series["tiers"][tier])
    yaxis = {"type": "log", "tickvals": _TICKS, "ticktext": [duration(tick) for tick in _TICKS]}
    return {"data": traces, "layout": layout(starts, step_seconds, yaxis=yaxis)}


def _pair(tier: str, x: list[int], values: dict[str, Values]) -> list[dict[str, Any]]:
    look = LOOKS[tier]
    hover = {"hovertemplate": "%{y:.3~s}s", "legendgroup": tier}
    p50 = line(f"{look.label} p50", x, _positive(values["p50"]), look.colour)
    p95 = line(f"{look.label} p95", x, _positive(values["p95"]), look.colour, dash="dot", width=1.5)
    return [p50 | hover, p95 | hover | {"showlegend": False}]


def _positive(values: Values) -> list[Number | None]:
    """A logarithm has no place for 0."""
    return [None if value is None else round(max(value, _LEAST_SECONDS), 6) for value in values]
