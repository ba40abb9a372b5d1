"""What has no axis of time, as tables: tokens that moved, what other sizes would do, engines, models, two sides."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboard.advising import Choice
from dashboard.exports.table import Column, Kind, Table
from dashboard.predicting import Outcome
from dashboard.selectors.engine_list import EngineRow
from dashboard.selectors.fleet import EngineTokens, Place
from dashboard.selectors.flows import Flow
from dashboard.selectors.store import TIER_ORDER


def flows_table(flows: Sequence[Flow]) -> Table:
    return Table(
        [
            Column("from", Kind.TEXT, [flow.origin for flow in flows]),
            Column("to", Kind.TEXT, [flow.to for flow in flows]),
            Column("tokens", Kind.INTEGER, [flow.tokens for flow in flows]),
        ]
    )


def curve_table(points: Sequence[tuple[int, float]]) -> Table:
    return Table(
        [
            Column("capacity_tokens", Kind.INTEGER, [capacity for capacity, _ in points]),
            Column("hit_rate", Kind.NUMBER, [rate for _, rate in points]),
        ]
    )


def split_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Shares of the prompt tokens by where they came from, one column an outcome."""
    origins = list(dict.fromkeys(tier for outcome in outcomes.values() for tier in outcome.hit))
    shares = [
        Column(f"{name}_share", Kind.NUMBER, [*(outcome.hit.get(tier, 0.0) for tier in origins), outcome.computed])
        for name, outcome in outcomes.items()
    ]
    return Table([Column("origin", Kind.TEXT, [*origins, "computed"]), *shares])


def frontier_table(tiers: Sequence[str], choices: Sequence[Choice]) -> Table:
    """Sizes worth their price, cheapest first."""
    sizes = [
        Column(f"{tier}_bytes", Kind.INTEGER, [choice.sizes[place] for choice in choices])
        for place, tier in enumerate(tiers)
    ]
    return Table(
        [
            Column("dollars_a_month", Kind.NUMBER, [choice.cost for choice in choices]),
            Column("ttft_seconds", Kind.NUMBER, [choice.seconds for choice in choices]),
            *sizes,
        ]
    )


def fleet_table(engines: Sequence[EngineRow], tokens: Mapping[Place, EngineTokens]) -> Table:
    """A row an engine and model."""
    told = [tokens.get((row.engine, row.model_name), EngineTokens()) for row in engines]
    named = {
        "engine": [row.engine for row in engines],
        "model": [row.model_name for row in engines],
        "state": [row.state for row in engines],
    }
    return Table([*(Column(name, Kind.TEXT, cells) for name, cells in named.items()), *_tokens(told)])


def models_table(engines: Sequence[EngineRow], models: Mapping[str, EngineTokens]) -> Table:
    """A row a model, its engines added up; the model is empty where no source tells it."""
    names = sorted({row.model_name for row in engines})
    counts = [sum(row.model_name == name for row in engines) for name in names]
    told = [models.get(name, EngineTokens()) for name in names]
    return Table([Column("model", Kind.TEXT, names), Column("engines", Kind.INTEGER, counts), *_tokens(told)])


def _tokens(told: Sequence[EngineTokens]) -> Iterator[Column]:
    """What is not told is an empty cell, no zero."""
    yield Column("prompt_tokens", Kind.INTEGER, [each.prompt_tokens for each in told])
    for tier in TIER_ORDER:
        if any(tier in each.hit_tokens for each in told):
            yield Column(f"{tier}_hit_tokens", Kind.INTEGER, [each.hit_tokens.get(tier) for each in told])
    yield Column("computed_tokens", Kind.INTEGER, [each.computed_tokens for each in told])
    yield Column("hit_rate", Kind.NUMBER, [each.hit_rate for each in told])


_SIDE = ("prompt_tokens", "computed_tokens", "generated_tokens", "requests", "hit_rate", "ttft_p50", "ttft_p95")


def sides_table(left: Mapping[str, Any], right: Mapping[str, Any]) -> Table:
    """A row a number of both sides' totals; of a side that nobody observed, empty cells and no zeros."""
    tiers = [tier for tier in TIER_ORDER if tier in {*left["hit_tokens"], *right["hit_tokens"]}]
    names = [*_SIDE, *(f"{tier}_hit_tokens" for tier in tiers)]
    told = [[*(side[name] for name in _SIDE), *(side["hit_tokens"].get(t) for t in tiers)] for side in (left, right)]
    cells = [
        each if side["is_observed"] else [None] * len(names) for side, each in zip((left, right), told, strict=True)
    ]
    return Table(
        [
            Column("number", Kind.TEXT, names),
            Column("left", Kind.NUMBER, cells[0]),
            Column("right", Kind.NUMBER, cells[1]),
        ]
    )
