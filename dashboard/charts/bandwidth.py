"""Bytes per second copied out of each tier and into it."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, Number, Values, covered_seconds, layout, line, milliseconds, unobserved


def bandwidth_figure(series: dict[str, Any], step_seconds: int, now: float) -> Figure:
    """Args: `series` as `copied_bytes_series` returns it: bytes by tier, "loaded" and "stored"."""
    starts: Sequence[int] = series["starts"]
    x = [start + step_seconds * 500 for start in milliseconds(starts)]
    traces: list[dict[str, Any]] = []
    for tier in tiers_in(series["tiers"]):
        copied = series["tiers"][tier]
        if any(copied["loaded"]) or any(copied["stored"]):
            rates = {name: _per_second(values, starts, step_seconds, now) for name, values in copied.items()}
            traces += _pair(tier, x, rates)
    figure_layout = layout(starts, step_seconds, yaxis={"rangemode": "tozero", "tickformat": "~s", "minallowed": 0})
    figure_layout["shapes"] = unobserved(starts, step_seconds, _observed(series), now)
    return {"data": traces, "layout": figure_layout}


def _pair(tier: str, x: list[int], rates: dict[str, list[Number | None]]) -> list[dict[str, Any]]:
    look = LOOKS[tier]
    hover = {"hovertemplate": "%{y:.3~s}B/s", "legendgroup": tier}
    loaded = line(f"{look.label} loaded", x, rates["loaded"], look.colour)
    stored = line(f"{look.label} stored", x, rates["stored"], look.colour, dash="dot", width=1.5)
    return [loaded | hover, stored | hover]


def _per_second(values: Values, starts: Sequence[int], step_seconds: int, now: float) -> list[Number | None]:
    return [
        None if value is None else round(value / covered_seconds(start, step_seconds, now), 3)
        for value, start in zip(values, starts, strict=True)
    ]


def _observed(series: dict[str, Any]) -> Values:
    """Any tier's values: all of them are None in the same steps."""
    return next((copied["loaded"] for copied in series["tiers"].values()), [0] * len(series["starts"]))
