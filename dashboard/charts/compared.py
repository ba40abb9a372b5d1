"""Two sides of a comparison: a table with their differences, why there are none, and figures on the same axes.

Draws from what selectors/sides.py read.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dashboard.charts import words
from dashboard.charts.differences import Better, Difference, points, relative
from dashboard.charts.hit_rate import hit_rate_figure
from dashboard.charts.palette import COMPUTED, LOOKS, TIER_ORDER
from dashboard.charts.parts import Figure
from dashboard.charts.percentiles import marked_range
from dashboard.charts.tokens import tokens_figure
from dashboard.charts.ttft import ttft_figure
from dashboard.selectors.comparisons import are_alike, share_of_looks
from dashboard.selectors.sides import Seen, observed

_AGAINST = "than on the right"
_NOT_TOLD = "–"
_COUNTS = (("prompt_tokens", "Prompt tokens"), ("generated_tokens", "Generated tokens"), ("requests", "Requests"))
Pair = tuple[Seen, Seen]


def note(pair: Pair) -> str:
    """Why the two are not compared; empty where they are."""
    for side, where in zip(pair, ("left", "right"), strict=True):
        if not side.totals["is_observed"]:
            return f"The {where} side was not observed at all: there is nothing to compare."
    for side, where in zip(pair, ("left", "right"), strict=True):
        if side.totals["prompt_tokens"] == 0 and not side.totals["requests"]:
            return f"Nothing was asked on the {where} side: there is nothing to compare."
    amounts = observed(*pair)
    if are_alike(*amounts):
        return ""
    few, many = ("left", "right") if amounts[0] < amounts[1] else ("right", "left")
    share = words.percent(share_of_looks(*amounts))
    return f"Only {share} as much was observed on the {few} side as on the {many}: the two are not compared."


def rows(pair: Pair) -> list[dict[str, Any]]:
    """[{"name", "origin", "cells": [{"text", "more"}], "difference"}]: a row a number, a cell a side."""
    compares = not note(pair)
    tiers = [tier for tier in TIER_ORDER if any(tier in side.tiers for side in pair)]
    told = [
        _row("Hit rate", [_rate(side) for side in pair], _points("more")),
        *(_row(f"from {LOOKS[tier].label}", [_from(side, tier) for side in pair], _points(""), tier) for tier in tiers),
        _row("computed", [_computed(side) for side in pair], _points(""), COMPUTED),
        *(_row(name, [_count(side, key) for side in pair], _relative("")) for key, name in _COUNTS),
        *(_row(f"TTFT {key[5:]}", [_time(side, key) for side in pair], _relative("less")) for key in _TIMES),
    ]
    return told if compares else [row | {"difference": {"text": _NOT_TOLD, "verdict": "neutral"}} for row in told]


_TIMES = ("ttft_p50", "ttft_p95")
Cell = tuple[float | None, str, str]  # the number, in words, and what it is made of
Differ = Callable[[float | None, float | None], Difference]


def _row(name: str, cells: Sequence[Cell], differ: Differ, origin: str = "") -> dict[str, Any]:
    (left, *_), (right, *_) = cells
    return {
        "name": name,
        "origin": origin,
        "cells": [{"text": text, "more": more} for _, text, more in cells],
        "difference": _in_words(differ(left, right)),
    }


def _in_words(difference: Difference) -> dict[str, str]:
    text = difference["amount"] or ("same" if difference["text"].startswith("as ") else difference["text"])
    return {"text": text or _NOT_TOLD, "verdict": difference["verdict"]}


def _points(better: Better) -> Differ:
    return lambda left, right: points(left, right, _AGAINST, better)


def _relative(better: Better) -> Differ:
    return lambda left, right: relative(left, right, _AGAINST, better)


def _rate(side: Seen) -> Cell:
    rate = side.totals["hit_rate"]
    return rate, words.percent(rate), ""


def _from(side: Seen, tier: str) -> Cell:
    """A dash for a tier of which the engine tells nothing, which is not the same as no hits."""
    return _share(side, side.totals["hit_tokens"].get(tier, 0) if tier in side.tiers else None)


def _computed(side: Seen) -> Cell:
    return _share(side, side.totals["computed_tokens"])


def _share(side: Seen, tokens: int | None) -> Cell:
    prompt = side.totals["prompt_tokens"]
    if tokens is None or not prompt:
        return None, _NOT_TOLD, ""
    return tokens / prompt, words.percent(tokens / prompt), f"{words.count(tokens)} tokens"


def _count(side: Seen, key: str) -> Cell:
    number = side.totals[key] if side.totals["is_observed"] else None
    return number, _NOT_TOLD if number is None else words.count(number), ""


def _time(side: Seen, key: str) -> Cell:
    return side.totals[key], words.duration(side.totals[key]), ""


def figures(pair: Pair, now: float) -> dict[str, list[Figure]]:
    """By the chart's name the left and the right one, each on the other's y axis."""
    steps = [side.side.period.step_seconds for side in pair]
    drawn = {
        "tokens": [tokens_figure(side.tokens, step, now) for side, step in zip(pair, steps, strict=True)],
        "hit-rate": [hit_rate_figure(side.rates, step) for side, step in zip(pair, steps, strict=True)],
        "ttft": [ttft_figure(side.ttft, step) for side, step in zip(pair, steps, strict=True)],
    }
    for couple in drawn.values():
        _share_axis(couple)
    return drawn


def _share_axis(couple: list[Figure]) -> None:
    """That of the taller one, with room for the lowest value of both where it is logarithmic."""
    heights = [_heights(figure) for figure in couple]
    every = [height for of_one in heights for height in of_one]
    if not every:
        return
    taller = couple[max(range(len(couple)), key=lambda index: max(heights[index], default=0.0))]
    axis = dict(taller["layout"]["yaxis"])
    top = 1.05 * max(every)
    if axis.get("type") == "log":
        axis["range"] = marked_range(axis["tickvals"], every)
    else:
        axis.setdefault("range", [0, top])
    for figure in couple:
        figure["layout"]["yaxis"] = axis | {"autorange": False}


def _heights(figure: Figure) -> list[float]:
    stacks: dict[int, float] = {}
    single: list[float] = []
    for trace in figure["data"]:
        for x, y in zip(trace["x"], trace["y"], strict=True):
            if y and trace["type"] == "bar":
                stacks[x] = stacks.get(x, 0.0) + y
            elif y:
                single.append(y)
    return [*stacks.values(), *single]
