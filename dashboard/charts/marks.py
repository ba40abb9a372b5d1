"""Vertical lines where somebody changed a tier's size, so that before and after can be compared on any chart."""

from typing import Any

from dashboard.charts.parts import Figure

_AXIS = "y9"
_COLOUR = "#7f8896"


def with_marks(figure: Figure, changes: list[dict[str, Any]]) -> Figure:
    """The same figure with a line and a hover text for each of `changes` (`{"at": Unix seconds, "text": sentence}`).

    Lines are shapes, which cannot be hovered: a row of triangles on an axis of its own carries the texts.
    """
    if not changes or not figure["data"]:
        return figure
    layout = figure["layout"]
    axis = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True, "domain": [0, 1]}
    shapes = [*layout["shapes"], *(_line(change["at"]) for change in changes)]
    return {"data": [*figure["data"], _triangles(changes)], "layout": layout | {"yaxis9": axis, "shapes": shapes}}


def _triangles(changes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": "tier changed",
        "mode": "markers",
        "x": [round(change["at"] * 1000) for change in changes],
        "y": [1] * len(changes),
        "text": [change["text"] for change in changes],
        "hovertemplate": "%{text}<extra></extra>",
        "yaxis": _AXIS,
        "marker": {"symbol": "triangle-down", "size": 10, "color": _COLOUR},
        "meta": {"themed": True, "marks": True},
        "legendrank": 2000,
        "cliponaxis": False,
    }


def _line(at: float) -> dict[str, Any]:
    x = round(at * 1000)
    style = {"color": _COLOUR, "width": 1.5, "dash": "dash"}
    return {
        "type": "line",
        "name": "mark",
        "xref": "x",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": style,
    }
