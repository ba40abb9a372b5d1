"""p50 and p95 of a time by tier, as lines on a logarithmic axis. Knows nothing about what took so long."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.charts.palette import LOOKS
from dashboard.charts.parts import Number, Values, line
from dashboard.charts.words import duration


def percentile_lines(
    tiers: Sequence[str], told: Mapping[str, Mapping[str, Values]], x: list[int], *, least_seconds: float, digits: int
) -> list[dict[str, Any]]:
    """Two traces for each tier that has values at `x`. A logarithm has no place for 0: it is drawn at the least."""
    traces: list[dict[str, Any]] = []
    for tier in tiers:
        if tier in told and any(value is not None for value in told[tier]["p50"]):
            traces += _pair(
                tier, x, {name: _positive(told[tier][name], least_seconds, digits) for name in ("p50", "p95")}
            )
    return traces


def _pair(tier: str, x: list[int], values: dict[str, list[Number | None]]) -> list[dict[str, Any]]:
    look = LOOKS[tier]
    hover = {"hovertemplate": "%{y:.3~s}s", "legendgroup": tier}
    p50 = line(f"{look.label} p50", x, values["p50"], look.colour)
    p95 = line(f"{look.label} p95", x, values["p95"], look.colour, dash="dot", width=1.5)
    return [p50 | hover, p95 | hover | {"showlegend": False}]


def _positive(values: Values, least_seconds: float, digits: int) -> list[Number | None]:
    return [None if value is None else round(max(value, least_seconds), digits) for value in values]


def seconds_axis(ticks: Sequence[float]) -> dict[str, Any]:
    return {"type": "log", "tickvals": list(ticks), "ticktext": [duration(tick) for tick in ticks]}
