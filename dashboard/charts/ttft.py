"""Time to first token by the slowest tier a request read from: what each tier's hits are worth, in seconds."""

from typing import Any

from dashboard.charts.palette import LOOKS, NO_TIER, TIER_ORDER
from dashboard.charts.parts import Figure, Number, Values, layout, line, milliseconds

# Powers of ten with 2 and 5 between: a cold prompt takes 50 times as long as a warm one, which a linear axis hides.
_TICKS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]


def ttft_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `ttft_series` returns it: `{"starts", "tiers": {tier or "none": {"p50", "p95"}}}`, seconds."""
    starts = series["starts"]
    x = [start + step_seconds * 500 for start in milliseconds(starts)]
    traces: list[dict[str, Any]] = []
    for tier in [*TIER_ORDER, NO_TIER]:
        if tier in series["tiers"] and _has_values(series["tiers"][tier]):
            traces += _pair(tier, x, series["tiers"][tier])
    yaxis = {
        "type": "log",
        "tickvals": _TICKS,
        "ticktext": [_seconds(tick) for tick in _TICKS],
    }
    return {"data": traces, "layout": layout(starts, step_seconds, yaxis=yaxis)}


def _has_values(values: dict[str, Values]) -> bool:
    return any(value is not None for value in values["p50"])


def _pair(tier: str, x: list[int], values: dict[str, Values]) -> list[dict[str, Any]]:
    look = LOOKS[tier]
    hover = {"hovertemplate": "%{y:.3~s}s", "legendgroup": tier}
    p50 = line(f"{look.label} p50", x, _positive(values["p50"]), look.colour)
    p95 = line(f"{look.label} p95", x, _positive(values["p95"]), look.colour, dash="dot", width=1.5)
    return [p50 | hover, p95 | hover | {"showlegend": False}]


def _positive(values: Values) -> list[Number | None]:
    """A logarithm has no place for 0: an interpolated 0 s is drawn at 0.1 ms."""
    return [None if value is None else round(max(value, 0.0001), 4) for value in values]


def _seconds(value: float) -> str:
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
