"""p50 and p95 of a time by tier, as lines on a logarithmic axis. Knows nothing about what took so long."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

from dashboard.charts.palette import LOOKS
from dashboard.charts.parts import Number, Values, line
from dashboard.charts.words import duration

_FEWEST_MARKS = 2  # one alone does not say how long an axis is


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


def seconds_axis(ticks: Sequence[float], traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Reaches to the next marks where these traces lie between two of them: an axis without a number says nothing."""
    axis = {"type": "log", "tickvals": list(ticks), "ticktext": [duration(tick) for tick in ticks]}
    drawn = [value for trace in traces for value in trace["y"] if value]
    return axis | ({"range": marked_range(ticks, drawn)} if drawn and _num_marks(ticks, drawn) < _FEWEST_MARKS else {})


def _num_marks(ticks: Sequence[float], drawn: Sequence[float]) -> int:
    return sum(min(drawn) <= tick <= max(drawn) for tick in ticks)


def marked_range(ticks: Sequence[float], drawn: Sequence[float]) -> list[float]:
    """The ends of a logarithmic axis from the mark below all of `drawn` to the one above."""
    below = max((tick for tick in ticks if tick < min(drawn)), default=min(drawn))
    above = min((tick for tick in ticks if tick > max(drawn)), default=max(drawn))
    return [log10(below), log10(above)]
