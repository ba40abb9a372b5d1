"""Tokens that moved between tiers, as a Sankey: where they came from on the left, where they went on the right.

Two columns instead of one node a tier: blocks go down and come back, and a circle shows no amounts.
"""

from collections.abc import Sequence
from typing import Any

from dashboard.charts.palette import COMPUTED, LOOKS, TIER_ORDER
from dashboard.charts.parts import Figure
from dashboard.selectors.flows import Flow

_ORIGINS = (COMPUTED, "found", *TIER_ORDER)
_ENDS = (*TIER_ORDER, "freed", "dropped")
_GREY = "#7f8896"
_EDGE = 0.001  # plotly takes 0 for a place that was not given
_GAP = 0.05
_LABELS = {
    "found": "found on disk or server",
    "freed": "freed: another tier has it",
    "dropped": "dropped: no tier has it",
}


def flows_figure(flows: Sequence[Flow]) -> Figure:
    """The links are the flows, in tokens; nodes without any are left out. Each side has its order in every period."""
    origins = [origin for origin in _ORIGINS if any(flow.origin == origin for flow in flows)]
    ends = [end for end in _ENDS if any(flow.to == end for flow in flows)]
    node = {
        "label": [*(label(origin) for origin in origins), *(label(end) for end in ends)],
        "color": [_colour(name) for name in (*origins, *ends)],
        "pad": 14,
        "thickness": 14,
        "line": {"width": 0},
        "x": [*([_EDGE] * len(origins)), *([1 - _EDGE] * len(ends))],
        "y": [
            *_middles([sum(flow.tokens for flow in flows if flow.origin == origin) for origin in origins]),
            *_middles([sum(flow.tokens for flow in flows if flow.to == end) for end in ends]),
        ],
        "hovertemplate": "%{label}: %{value:,} tokens<extra></extra>",
    }
    link = {
        "source": [origins.index(flow.origin) for flow in flows],
        "target": [len(origins) + ends.index(flow.to) for flow in flows],
        "value": [flow.tokens for flow in flows],
        "color": [_translucent(_colour(flow.origin)) for flow in flows],
        "hovertemplate": "%{source.label} → %{target.label}: %{value:,} tokens<extra></extra>",
    }
    sankey = {"type": "sankey", "arrangement": "snap", "valueformat": ",", "node": node, "link": link}
    return {"data": [sankey] if flows else [], "layout": {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}}}


def flow_rows(flows: Sequence[Flow]) -> list[dict[str, Any]]:
    """The same as words and numbers, the most first."""
    total = sum(flow.tokens for flow in flows)
    return [
        {"from": label(flow.origin), "to": label(flow.to), "tokens": flow.tokens, "share": flow.tokens / total}
        for flow in flows
    ]


def _middles(sizes: Sequence[int]) -> list[float]:
    """Of nodes of these sizes from top to bottom of a side, with gaps between them."""
    height, places, before = 1 - _GAP * (len(sizes) - 1), list[float](), 0
    for index, size in enumerate(sizes):
        places.append(max(_EDGE, (before + size / 2) / sum(sizes) * height + _GAP * index))
        before += size
    return places


def label(name: str) -> str:
    return _LABELS.get(name) or LOOKS[name].label


def _colour(name: str) -> str:
    return LOOKS[name].colour if name in LOOKS else _GREY


def _translucent(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},.38)"
