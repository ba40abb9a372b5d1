"""Things that should not happen often, as bars a tier: copies that failed, tokens that were not worth loading."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import LOOKS, tiers_in
from dashboard.charts.parts import Figure, Values, bars, layout, milliseconds, unobserved

_PATTERNS = {"load": "", "store": "/"}


def failures_figure(series: dict[str, Any], step_seconds: int, now: float) -> Figure:
    """Args: `series` as `failures_series` returns it: `{"starts", "tiers": {tier: {"load", "store"}}}`."""
    stacks = [
        (f"{LOOKS[tier].label} {operation}", tier, _PATTERNS[operation], values)
        for tier in tiers_in(series["tiers"])
        for operation, values in series["tiers"][tier].items()
    ]
    return _figure(series["starts"], stacks, step_seconds, now, "%{y:,} failed")


def skipped_figure(series: dict[str, Any], step_seconds: int, now: float) -> Figure:
    """Args: `series` as `skipped_series` returns it: `{"starts", "tiers": {tier: tokens}}`."""
    stacks = [(LOOKS[tier].label, tier, "", series["tiers"][tier]) for tier in tiers_in(series["tiers"])]
    return _figure(series["starts"], stacks, step_seconds, now, "%{y:,} tokens")


def _figure(
    starts: Sequence[int], stacks: list[tuple[str, str, str, Values]], step_seconds: int, now: float, hover: str
) -> Figure:
    x = milliseconds(starts)
    traces = [
        bars(name, x, list(values), step_seconds * 1000, LOOKS[tier].colour, pattern) | {"hovertemplate": hover}
        for name, tier, pattern, values in stacks
        if any(values)
    ]
    figure_layout = layout(starts, step_seconds, yaxis={"rangemode": "tozero", "tickformat": "~s", "minallowed": 0})
    observed: Values = stacks[0][3] if stacks else [0] * len(starts)
    figure_layout["shapes"] = unobserved(starts, step_seconds, observed, now)
    return {"data": traces, "layout": figure_layout}
