"""Charts whose axis is not time, as tables: tokens that moved between tiers, and what other sizes would do."""

from collections.abc import Mapping, Sequence

from dashboard.advising import Choice
from dashboard.exports.table import Column, Kind, Table
from dashboard.predicting import Outcome
from dashboard.selectors.flows import Flow


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
