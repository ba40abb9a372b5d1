"""The what-if page's figures: hit rate against capacity with each tier's end, splits, the frontier."""

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import Any

from dashboard.charts.palette import COMPUTED, LOOKS
from dashboard.charts.parts import Figure
from dashboard.charts.words import percent
from dashboard.sizes import format_size

_LINE = "#5668bf"
_DIGITS = 5
_BEYOND = 4
_TICK_RATIO = 8  # three doublings: 512 tokens to 100 million are six ticks
Point = tuple[int, float]  # capacity in tokens, hit rate


def curve_figure(
    points: Sequence[Point],
    bytes_a_token: float,
    today: Mapping[str, int],
    chosen: Mapping[str, int],
    band: Sequence[tuple[float, float]] = (),
) -> Figure:
    """`today` and `chosen`: how deep each tier reaches, in tokens; `band`: low and high at each point."""
    x = [capacity for capacity, _ in points]
    y = [round(rate, _DIGITS) for _, rate in points]
    hover = [
        f"{capacity:,} tokens, {format_size(round(capacity * bytes_a_token))}: {percent(r)}" for capacity, r in points
    ]
    curve = {
        "type": "scatter",
        "mode": "lines",
        "name": "hit rate",
        "x": x,
        "y": y,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "hovertext": hover,
        "line": {"color": _LINE, "width": 2},
    }
    low, high = _shown(points, [*today.values(), *chosen.values()])
    moved = {tier: end for tier, end in chosen.items() if end != today.get(tier)}
    layout = {
        "xaxis": {"type": "log", "range": [log10(low / 1.3), log10(high * 1.3)], **_ticks(low, high, bytes_a_token)},
        "yaxis": {"tickformat": ".0%", "range": [0, 1.005], "fixedrange": True},
        "margin": {"l": 48, "r": 10, "t": 44, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
        "shapes": [*_marks(today, "solid"), *_marks(moved, "dash")],
        "annotations": list(_labels(today)),
    }
    return {"data": [*_band(x, band), curve], "layout": layout}


def _shown(points: Sequence[Point], ends: Sequence[int]) -> tuple[int, int]:
    """From the smallest capacity to a little beyond the last tier's end and the last hit; all is flat after that."""
    highest = points[-1][1] if points else 0.0
    last_hit = next((capacity for capacity, rate in points if rate >= highest), 1)
    low = min([points[0][0] if points else 1, *ends])
    return low, _BEYOND * max([last_hit, *ends, 2 * low])


def split_figure(splits: Mapping[str, Mapping[str, float]]) -> Figure:
    """A bar for each split, by its name; `splits`: share of the prompt tokens by tier. What is left was computed."""
    names = list(splits)
    tiers = [tier for tier in LOOKS if any(tier in split for split in splits.values())]
    whole = {name: {**split, COMPUTED: max(0.0, 1.0 - sum(split.values()))} for name, split in splits.items()}
    traces = [_bar(tier, [whole[name].get(tier, 0.0) for name in names], names) for tier in [*tiers, COMPUTED]]
    layout = {
        "barmode": "stack",
        "xaxis": {"tickformat": ".0%", "range": [0, 1.0], "fixedrange": True},
        "yaxis": {"autorange": "reversed", "fixedrange": True},
        "margin": {"l": 78, "r": 14, "t": 30, "b": 30},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "bargap": 0.35,
    }
    return {"data": traces, "layout": layout}


def frontier_figure(front: Sequence[tuple[float, float, str]], marks: Mapping[str, tuple[float, float]]) -> Figure:
    """`front`: dollars a month, seconds and words of each choice; `marks`: dollars and seconds by name."""
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "frontier",
        "x": [round(dollars, 4) for dollars, _, _ in front],
        "y": [round(seconds, 6) for _, seconds, _ in front],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "hovertext": [words for _, _, words in front],
        "line": {"color": _LINE, "width": 2, "shape": "hv"},
    }
    points = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": name,
            "x": [round(dollars, 4)],
            "y": [round(seconds, 6)],
            "text": [name],
            "textposition": "top right",
            "hoverinfo": "name",
            "cliponaxis": False,
            "marker": {"color": "#d9661f", "size": 10, "symbol": "diamond"},
        }
        for name, (dollars, seconds) in marks.items()
    ]
    layout = {
        "xaxis": {"title": {"text": "$ a month"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "seconds to first token"}, "rangemode": "tozero"},
        "margin": {"l": 62, "r": 14, "t": 30, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
    }
    return {"data": [line, *points], "layout": layout}


def _bar(origin: str, values: list[float], names: list[str]) -> dict[str, Any]:
    look = LOOKS[origin]
    marker: dict[str, Any] = {"color": look.colour, "line": {"width": 0}}
    if look.pattern:
        marker["pattern"] = {"shape": look.pattern, "fillmode": "overlay", "size": 5, "solidity": 0.2}
        marker["pattern"]["fgcolor"] = "rgba(255,255,255,.55)"
    return {
        "type": "bar",
        "orientation": "h",
        "name": look.label,
        "x": [round(value, _DIGITS) for value in values],
        "y": names,
        "marker": marker,
        "text": [percent(value) if value >= 0.06 else "" for value in values],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textfont": {"color": "#ffffff"},
        "hovertemplate": "%{hovertext}<extra>%{fullData.name}</extra>",
        "hovertext": [percent(value) for value in values],
    }


def _band(x: list[int], band: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """What sampling leaves open, as a shaded stretch below and above the curve."""
    if not band:
        return []
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip", "name": "sampling"}
    low = edge | {"y": [round(low, _DIGITS) for low, _ in band]}
    high = edge | {
        "y": [round(high, _DIGITS) for _, high in band],
        "fill": "tonexty",
        "fillcolor": "rgba(86,104,191,.2)",
    }
    return [low, high]


def _marks(ends: Mapping[str, int], dash: str) -> Iterator[dict[str, Any]]:
    for tier, end in ends.items():
        if end > 0:
            yield {
                "type": "line",
                "name": f"{tier} {'today' if dash == 'solid' else 'chosen'}",
                "yref": "paper",
                "x0": end,
                "x1": end,
                "y0": 0,
                "y1": 1,
                "line": {"color": LOOKS[tier].colour, "width": 2, "dash": dash},
            }


def _labels(ends: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """On two lines in turns, since small tiers stand close on a logarithmic axis."""
    for place, (tier, end) in enumerate((tier, end) for tier, end in ends.items() if end > 0):
        yield {
            "text": f"<b>{LOOKS[tier].label}</b>",
            "font": {"color": LOOKS[tier].colour},
            "x": log10(end),
            "xref": "x",
            "y": 1.0 + 0.07 * (place % 2),
            "yref": "paper",
            "yanchor": "bottom",
            "xanchor": "right",
            "showarrow": False,
        }


def _ticks(low: int, high: int, bytes_a_token: float) -> dict[str, Any]:
    """Powers of two, in tokens and below in bytes."""
    first = 1 << max(0, low.bit_length() - 1)
    values = [
        first * _TICK_RATIO**power for power in range(12) if low / 1.3 <= first * _TICK_RATIO**power <= high * 1.3
    ]
    return {
        "tickvals": values,
        "ticktext": [f"{_tokens(v)}<br>{format_size(round(v * bytes_a_token))}" for v in values],
    }


def _tokens(number: int) -> str:
    if number < 100_000:
        return f"{number:,}"
    return f"{number / 1e6:.3g} M" if number >= 1_000_000 else f"{number / 1e3:.3g} k"
