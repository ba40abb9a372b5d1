"""Share of the prompt tokens that each tier served. No bar where nothing was asked: no value is not zero."""

from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, Number, Values, bars, layout, line, milliseconds


def hit_rate_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `hit_rate_series` returns it: `{"starts", "total", "tiers": {tier: rates}}`, rates 0..1 or None."""
    starts = series["starts"]
    x = milliseconds(starts)
    traces: list[dict[str, Any]] = []
    for tier in tiers_in(series["tiers"]):
        look = LOOKS[tier]
        y = _rounded(series["tiers"][tier])
        bar = bars(look.label, x, y, step_seconds * 1000, look.colour, look.pattern)
        traces.append(bar | {"hovertemplate": "%{y:.1%}"})
    total = line("all tiers", x, _rounded(series["total"]), "#7f8896", shape="hvh") | {"hovertemplate": "%{y:.1%}"}
    total["line"]["width"] = 1.5
    total["meta"] = {"themed": True}
    yaxis = {"title": {"text": "share of prompt tokens"}, "tickformat": ".0%", "range": [0, 1.001], "fixedrange": True}
    return {"data": [*traces, total], "layout": layout(starts, step_seconds, yaxis=yaxis)}


def _rounded(rates: Values) -> list[Number | None]:
    return [None if rate is None else round(rate, 5) for rate in rates]
