"""Prompt tokens per second, stacked by the tier they came from, what was computed on top."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import COMPUTED, LOOKS, tiers_in
from dashboard.charts.parts import Figure, Number, Values, bars, covered_seconds, layout, milliseconds, unobserved


def tokens_figure(series: dict[str, Any], step_seconds: int, now: float) -> Figure:
    """Args: `series` as `token_series` returns it (tokens per bucket, None where nothing was observed).

    Without a token nothing is drawn: an axis without a length says less than a sentence.
    """
    starts: Sequence[int] = series["starts"]
    x = milliseconds(starts)
    is_told = any(value is not None for value in series["computed"])
    computed = [(COMPUTED, series["computed"])] if is_told else []
    stacks = [(tier, series["hit"][tier]) for tier in tiers_in(series["hit"])] + computed
    traces: list[dict[str, Any]] = []
    for origin, values in stacks:
        look = LOOKS[origin]
        y = _per_second(values, starts, step_seconds, now)
        traces.append(
            bars(look.label, x, y, step_seconds * 1000, look.colour, look.pattern)
            | {"hovertemplate": "%{y:,.1f} tokens/s"}
        )
    # SI prefixes from 1,000 on; below 1 they would say 500m.
    tickformat = "~s" if _peak(traces) >= 1000 else "~r"
    yaxis = {"rangemode": "tozero", "tickformat": tickformat, "minallowed": 0}
    figure_layout = layout(starts, step_seconds, yaxis=yaxis)
    figure_layout["shapes"] = unobserved(starts, step_seconds, series["prompt"], now)
    return {"data": traces if _peak(traces) else [], "layout": figure_layout}


def _peak(traces: Sequence[dict[str, Any]]) -> float:
    """The highest single value."""
    return max((value or 0 for trace in traces for value in trace["y"]), default=0)


def _per_second(values: Values, starts: Sequence[int], step_seconds: int, now: float) -> list[Number | None]:
    return [
        None if value is None else round(value / covered_seconds(start, step_seconds, now), 3)
        for value, start in zip(values, starts, strict=True)
    ]
