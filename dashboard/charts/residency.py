"""Tokens that lie in each tier against the most that it can hold: one row a tier, since sizes differ by magnitudes."""

from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, layout, line, milliseconds

_GAP = 0.09


def residency_figure(series: dict[str, Any], step_seconds: int) -> Figure:
    """Args: `series` as `residency_series` returns it: `{"starts", "tiers": {tier: {"resident", "capacity"}}}`."""
    starts = series["starts"]
    x = [start + step_seconds * 500 for start in milliseconds(starts)]
    tiers = [tier for tier in tiers_in(series["tiers"]) if _is_used(series["tiers"][tier])]
    figure_layout = layout(starts, step_seconds, showlegend=False)
    figure_layout["annotations"] = []
    traces: list[dict[str, Any]] = []
    for row, tier in enumerate(tiers):
        axis = "y" if row == 0 else f"y{row + 1}"
        figure_layout[axis.replace("y", "yaxis")] = _row(row, len(tiers))
        figure_layout["annotations"].append(_title(tier, row, len(tiers)))
        traces += _pair(tier, x, series["tiers"][tier], axis)
    figure_layout["xaxis"]["anchor"] = f"y{len(tiers)}" if len(tiers) > 1 else "y"
    return {"data": traces, "layout": figure_layout}


def _is_used(values: dict[str, Any]) -> bool:
    return any(values["resident"]) or any(values["capacity"])


def _pair(tier: str, x: list[int], values: dict[str, Any], axis: str) -> list[dict[str, Any]]:
    look = LOOKS[tier]
    hover = {"hovertemplate": "%{y:,.0f} tokens", "yaxis": axis}
    resident = line(f"{look.label} resident", x, list(values["resident"]), look.colour)
    capacity = line(f"{look.label} capacity", x, list(values["capacity"]), look.colour, dash="dot", shape="hvh")
    return [resident | hover | {"fill": "tozeroy", "fillcolor": _translucent(look.colour)}, capacity | hover]


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
    return f"rgba({red},{green},{blue},.22)"
