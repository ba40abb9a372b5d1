"""One side of a comparison: what an engine, or all, did in one period, and how well it was observed. Reads only."""

from dataclasses import dataclass
from typing import Any

from dashboard.selectors import latency, tokens
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, counters_of, in_tier_order
from dashboard.selectors.totals import totals


@dataclass(frozen=True)
class Side:
    """`engine` None means all of them."""

    period: Period
    engine: str | None
    model_name: str | None


@dataclass(frozen=True)
class Seen:
    """`totals`, `tokens`, `rates` and `ttft` as their selectors say; `tiers` of which it tells hits, also where none
    came; `observed_share` of the period's steps had any observation.
    """

    side: Side
    totals: dict[str, Any]
    tokens: dict[str, Any]
    rates: dict[str, Any]
    ttft: dict[str, Any]
    tiers: tuple[str, ...]
    observed_share: float


def seen(side: Side) -> Seen:
    filters = {"engine": side.engine, "model_name": side.model_name}
    told = tokens.token_series(side.period, **filters)
    hits = counters_of((Metric.HIT_TOKENS,), **filters)
    observed = [value is not None for value in told["prompt"]]
    return Seen(
        side,
        totals(side.period, **filters),
        told,
        tokens.hit_rate_series(side.period, **filters),
        latency.ttft_series(side.period, **filters),
        tuple(in_tier_order(set(hits.values_list("cache_tier", flat=True)))),
        sum(observed) / len(observed),
    )


def observed(one: Seen, other: Seen) -> tuple[float, float]:
    """How much was observed of each, as comparable amounts.

    Of the same engine the looks at it; two engines are looked at as often as their sources say, so that of them it is
    the share of the steps in which anybody looked.
    """
    if one.side.engine == other.side.engine:
        return float(one.totals["num_looks"]), float(other.totals["num_looks"])
    return one.observed_share, other.observed_share
