"""Share of the prompt tokens that each tier served. No bar where nothing was asked: no value is not zero."""

from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, Number, Values, bars, layout, milliseconds
from dashboard.charts.words import percent


def hit_rate_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `hit_rate_series` returns it: `{"starts", "total", "tiers": {tier: [0..1 or None]}}`."""
    starts = series["starts"]
    x = milliseconds(starts)
    traces: list[dict[str, Any]] = []
    for tier in tiers_in(series["tiers"]):
        look = LOOKS[tier]
        y = _rounded(series["tiers"][tier])
        bar = bars(look.label, x, y, step_seconds * 1000, look.colour, look.pattern)
        reached = series.get("conditional", {}).get(tier)
        traces.append(bar | {"hovertemplate": "%{hovertext}", "hovertext": _words(series["tiers"][tier], reached)})
    total = _total([start + step_seconds * 500 for start in x], _rounded(series["total"]))
    yaxis = {
        "tickformat": ".0%",
        "range": [0, _top(series["total"])],
        "fixedrange": True,
    }
    return {"data": [*traces, total], "layout": layout(starts, step_seconds, yaxis=yaxis)}


def _words(rates: Values, reached: Values | None) -> list[str]:
    """The rate, and how good the tier is at what it was asked: tokens that a faster tier had never reached it."""
    conditional = reached or [None] * len(rates)
    return [
        percent(rate) + ("" if share is None else f" ({percent(share)} of what reached it)")
        for rate, share in zip(rates, conditional, strict=True)
    ]


def _total(x: list[int], y: list[Number | None]) -> dict[str, Any]:
    """All tiers together: the stack's height shows it, so that it only speaks when hovered and in the table."""
    marker = {"opacity": 0, "size": 6, "color": "#7f8896"}
    words = {"name": "all tiers", "hovertemplate": "%{hovertext}", "hovertext": _words(y, None), "showlegend": False}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": marker, **words}


def _top(total: Values) -> float:
    """100 %, with room for the line; more only where an engine counts wrongly, which has to be seen."""
    return max(1.005, 1.02 * max((rate for rate in total if rate is not None), default=0))


def _rounded(rates: Values) -> list[Number | None]:
    return [None if rate is None else round(rate, 5) for rate in rates]
