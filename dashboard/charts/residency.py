"""Tokens that lie in each tier against the most that it can hold: one row a tier, since sizes differ by magnitudes.

What lies there is drawn as bars: plotly fills the area below a line across its gaps, which nobody observed.
"""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, bars, layout, line, milliseconds

_GAP = 0.09


def residency_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `residency_series` returns it: `{"starts", "tiers": {tier: {"resident", "capacity"}}}`."""
    starts = series["starts"]
    tiers = [tier for tier in tiers_in(series["tiers"]) if _is_used(series["tiers"][tier])]
    figure_layout = layout(starts, step_seconds, showlegend=False)
    figure_layout["annotations"] = []
    traces: list[dict[str, Any]] = []
    for row, tier in enumerate(tiers):
        axis = "y" if row == 0 else f"y{row + 1}"
        figure_layout[axis.replace("y", "yaxis")] = _row(row, len(tiers))
        figure_layout["annotations"].append(_title(tier, row, len(tiers)))
        traces += _pair(tier, starts, step_seconds, series["tiers"][tier], axis)
    figure_layout["xaxis"]["anchor"] = f"y{len(tiers)}" if len(tiers) > 1 else "y"
    return {"data": traces, "layout": figure_layout}


def _is_used(values: dict[str, Any]) -> bool:
    return any(values["resident"]) or any(values["capacity"])


def _pair(
    tier: str, starts: Sequence[int], step_seconds: int, values: dict[str, Any], axis: str
) -> list[dict[str, Any]]:
    look, x = LOOKS[tier], milliseconds(starts)
    middles = [start + step_seconds * 500 for start in x]
    hover = {"hovertemplate": "%{y:,.0f} tokens", "yaxis": axis}
    resident = bars(
        f"{look.label} resident", x, list(values["resident"]), step_seconds * 1000, _translucent(look.colour)
    )
    capacity = line(f"{look.label} capacity", middles, list(values["capacity"]), look.colour, dash="dot", shape="hvh")
    return [resident | hover, capacity | hover]


def _domain(row: int, num_rows: int) -> tuple[float, float]:
    """Rows from the top, equally high, with room for a title above each."""
    height = (1 - _GAP * (num_rows - 1)) / num_rows
    top = 1 - row * (height + _GAP)
    return round(max(0.0, top - height), 4), round(top, 4)


def _row(row: int, num_rows: int) -> dict[str, Any]:
    return {"domain": list(_domain(row, num_rows)), "rangemode": "tozero", "nticks": 4, "tickformat": "~s"}


def _title(tier: str, row: int, num_rows: int) -> dict[str, Any]:
    return {
        "text": f"<b>{LOOKS[tier].label}</b>: resident, capacity dotted",
        "font": {"color": LOOKS[tier].colour},
        "x": 0,
        "y": _domain(row, num_rows)[1],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _translucent(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},.45)"
