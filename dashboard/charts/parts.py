"""The pieces that every figure is made of: time axes, traces, shading. Knows nothing about tokens or tiers."""

from collections.abc import Iterator, Sequence
from typing import Any

Figure = dict[str, Any]
Number = int | float
Values = Sequence[Number | None]


# The day stands below the first tick and wherever a new one begins.
_TICKS = [
    {"dtickrange": [None, 59_999], "value": "%H:%M:%S\n%Y-%m-%d"},
    {"dtickrange": [60_000, 86_399_999], "value": "%H:%M\n%Y-%m-%d"},
    {"dtickrange": [86_400_000, "M1"], "value": "%m-%d\n%Y"},
    {"dtickrange": ["M1", None], "value": "%Y-%m"},
]


def milliseconds(starts: Sequence[int]) -> list[int]:
    return [start * 1000 for start in starts]


def layout(starts: Sequence[int], step_seconds: int, **more: Any) -> dict[str, Any]:
    """The common layout; the x axis always spans the whole period, so that charts below each other line up."""
    axis: dict[str, Any] = {
        "type": "date",
        "hoverformat": "%Y-%m-%d %H:%M:%S" if step_seconds < 60 else "%Y-%m-%d %H:%M",
        "tickformatstops": _TICKS,
    }
    if starts:
        axis["range"] = [starts[0] * 1000, (starts[-1] + step_seconds) * 1000]
    return {
        "xaxis": axis,
        "hovermode": "x unified",
        "barmode": "stack",
        "bargap": 0,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "margin": {"l": 52, "r": 10, "t": 30, "b": 32},
        "shapes": [],
        **more,
    }


def bars(name: str, x: list[int], y: list[Number | None], width: int, colour: str, pattern: str = "") -> dict[str, Any]:
    """A bar from each bucket's start to its end; a bucket without a value draws nothing."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if pattern:
        marker["pattern"] = {
            "shape": pattern,
            "fillmode": "overlay",
            "size": 5,
            "solidity": 0.2,
            "fgcolor": "rgba(255,255,255,.55)",
        }
    return {"type": "bar", "name": name, "x": x, "y": y, "width": width, "offset": 0, "marker": marker}


def line(name: str, x: list[int], y: list[Number | None], colour: str, **style: Any) -> dict[str, Any]:
    """A line with gaps where there is no value; a value alone between two gaps shows as a dot."""
    return {
        "type": "scatter",
        "name": name,
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "connectgaps": False,
        "line": {"color": colour, "width": 2, **style},
        "marker": {"color": colour, "size": [7 if alone else 0 for alone in _alone(y)]},
    }


def _alone(y: Values) -> Iterator[bool]:
    for index, value in enumerate(y):
        before = y[index - 1] if index else None
        after = y[index + 1] if index + 1 < len(y) else None
        yield value is not None and before is None and after is None


# A bucket that has just begun may still be observed: recordings come every 10 s, and one may be a little late.
_SETTLED_SECONDS = 15


def unobserved(starts: Sequence[int], step_seconds: int, values: Values, now: float) -> list[dict[str, Any]]:
    """Shaded stretches for the buckets in which no source was seen: they are unknown, not zero."""
    shapes: list[dict[str, Any]] = []
    for start, value in zip(starts, values, strict=True):
        if value is not None or start + step_seconds > now - _SETTLED_SECONDS:
            continue
        if shapes and shapes[-1]["x1"] == start * 1000:
            shapes[-1]["x1"] += step_seconds * 1000
        else:
            shapes.append(_shade(start * 1000, (start + step_seconds) * 1000))
    return shapes


def _shade(x0: int, x1: int) -> dict[str, Any]:
    return {
        "type": "rect",
        "name": "unobserved",
        "xref": "x",
        "yref": "paper",
        "x0": x0,
        "x1": x1,
        "y0": 0,
        "y1": 1,
        "line": {"width": 0},
        "fillcolor": "rgba(127,136,150,.14)",
        "layer": "below",
    }


def covered_seconds(start: int, step_seconds: int, now: float) -> float:
    """How much of a bucket has passed: the newest one is still filling, and its rate must not look low for that."""
    return min(step_seconds, max(1.0, now - start))
