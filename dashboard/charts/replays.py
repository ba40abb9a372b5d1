"""Replays side by side: a table of what each counted, and the hit rate over the time of the trace."""

from collections.abc import Callable, Sequence
from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import COMPUTED, LOOKS, TENANT_LOOKS
from dashboard.charts.parts import Figure, line
from dashboard.models import CacheTier, Replay
from dashboard.replay_words import tiers_in_words

_DIGITS = 5
_NOT_TOLD = "–"
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # so that colour is never alone


def compared_rows(replays: Sequence[Replay]) -> list[dict[str, Any]]:
    """[{"name", "origin", "cells"}]: a row a number, a cell a replay."""
    tiers = [tier for tier in CacheTier.values if any(tier in replay.blocks for replay in replays)]
    return [
        _row("Tiers", replays, lambda replay: "; ".join(tiers_in_words(replay))),
        _row("Hit rate", replays, lambda replay: words.percent(_share(replay, sum(replay.hit_tokens.values())))),
        *(_row(f"from {LOOKS[tier].label}", replays, _from_tier(tier), tier) for tier in tiers),
        _row(
            "computed",
            replays,
            lambda replay: words.percent(_share(replay, _count(replay, "computed_tokens"))),
            COMPUTED,
        ),
        _row("Prompt tokens", replays, lambda replay: f"{_count(replay, 'prompt_tokens'):,}"),
        _row("Requests", replays, lambda replay: f"{_count(replay, 'requests'):,}"),
        *(_row(f"Blocks evicted from {LOOKS[tier].label}", replays, _evicted(tier)) for tier in tiers),
    ]


def unequal(replays: Sequence[Replay]) -> str:
    """A sentence where they were not asked the same; empty where they were."""
    if len({_count(replay, "prompt_tokens") for replay in replays}) <= 1:
        return ""
    return "These runs have not gone through the same prompts: their rates are of different traffic."


def compared_figure(
    names: Sequence[str], series: Sequence[dict[str, Any]], axis: str = "hours into the trace"
) -> Figure:
    """`series`: {"times", "rates"} of each, from its own beginning."""
    looks = zip(names, series, TENANT_LOOKS, _DASHES, strict=False)
    traces = [
        line(
            name,
            told["times"],
            [None if r is None else round(r, _DIGITS) for r in told["rates"]],
            look.colour,
            dash=dash,
        )
        | {"hovertemplate": "%{y:.1%}"}
        for name, told, look, dash in looks
    ]
    layout = {
        "xaxis": {"title": {"text": axis}, "rangemode": "tozero", "hoverformat": ".2f"},
        "yaxis": {"tickformat": ".0%", "range": [0, 1.005], "fixedrange": True},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "margin": {"l": 48, "r": 10, "t": 34, "b": 44},
    }
    return {"data": traces, "layout": layout}


def _row(name: str, replays: Sequence[Replay], cell: Callable[[Replay], str], origin: str = "") -> dict[str, Any]:
    return {"name": name, "origin": origin, "cells": [cell(replay) for replay in replays]}


def _from_tier(tier: str) -> Callable[[Replay], str]:
    return lambda replay: _of_tier(replay, tier, words.percent(_share(replay, replay.hit_tokens.get(tier, 0))))


def _evicted(tier: str) -> Callable[[Replay], str]:
    return lambda replay: _of_tier(replay, tier, f"{replay.counts['evicted_blocks'].get(tier, 0):,}")


def _of_tier(replay: Replay, tier: str, text: str) -> str:
    return text if tier in replay.blocks else _NOT_TOLD


def _count(replay: Replay, name: str) -> int:
    return int(replay.counts.get(name, 0))


def _share(replay: Replay, tokens: int) -> float | None:
    prompt = _count(replay, "prompt_tokens")
    return tokens / prompt if prompt else None
