"""What selectors say step by step, as tables: one row a step, one column a line of the chart, its unit in its name.

Counts are the stored integers, where a chart draws them per second: their sums are the period's totals.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboard.charts.palette import NO_TIER, tiers_in
from dashboard.exports.table import Cell, Column, Kind, Table

Series = Mapping[str, Any]


def _timed(series: Series, step_seconds: int, columns: Iterator[Column]) -> Table:
    starts: Sequence[int] = series["starts"]
    steps = [series.get("step_seconds", step_seconds)] * len(starts)
    return Table([Column("start", Kind.TIME, starts), Column("step_seconds", Kind.INTEGER, steps), *columns])


def _whole(name: str, cells: Sequence[Cell]) -> Column:
    return Column(name, Kind.INTEGER, cells)


def _number(name: str, cells: Sequence[Cell]) -> Column:
    return Column(name, Kind.NUMBER, cells)


def tokens_table(series: Series, step_seconds: int) -> Table:
    def columns() -> Iterator[Column]:
        yield _whole("prompt_tokens", series["prompt"])
        for tier in tiers_in(series["hit"]):
            yield _whole(f"{tier}_hit_tokens", series["hit"][tier])
        yield _whole("computed_tokens", series["computed"])

    return _timed(series, step_seconds, columns())


def hit_rate_table(series: Series, step_seconds: int) -> Table:
    def columns() -> Iterator[Column]:
        yield _number("hit_rate", series["total"])
        for tier in tiers_in(series["tiers"]):
            yield _number(f"{tier}_hit_rate", series["tiers"][tier])
        for tier in tiers_in(series["conditional"]):
            yield _number(f"{tier}_hit_rate_of_what_reached_it", series["conditional"][tier])

    return _timed(series, step_seconds, columns())


def by_tier_table(series: Series, step_seconds: int, names: Mapping[str, str]) -> Table:
    """`names`: what the selector calls a tier's values → how its column ends, like "resident_tokens"."""
    told = series["tiers"]
    columns = (_whole(f"{tier}_{name}", told[tier][key]) for tier in tiers_in(told) for key, name in names.items())
    return _timed(series, step_seconds, columns)


def skipped_table(series: Series, step_seconds: int) -> Table:
    told = series["tiers"]
    columns = (_whole(f"{tier}_skipped_tokens", told[tier]) for tier in tiers_in(told))
    return _timed(series, step_seconds, columns)


def quantiles_table(series: Series, step_seconds: int, counted: str) -> Table:
    """`counted`: what the histogram counts, like "requests"."""

    def columns() -> Iterator[Column]:
        told = series["tiers"]
        for tier in [*tiers_in(told), *({NO_TIER} & set(told))]:
            name = "no_tier" if tier == NO_TIER else tier
            yield _number(f"{name}_p50_seconds", told[tier]["p50"])
            yield _number(f"{name}_p95_seconds", told[tier]["p95"])
            yield _whole(f"{name}_{counted}", told[tier]["count"])

    return _timed(series, step_seconds, columns())


def tenants_table(series: Series, step_seconds: int) -> Table:
    def columns() -> Iterator[Column]:
        for tenant, told in series["tenants"].items():
            yield _whole(f"{tenant}_prompt_tokens", told["prompt"])
            yield _whole(f"{tenant}_hit_tokens", told["hit"])

    return _timed(series, step_seconds, columns())
