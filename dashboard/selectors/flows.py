"""Tokens that moved between tiers in a period: where they came from and where they went. Reads only."""

from dataclasses import dataclass

from dashboard.selectors.period import Period
from dashboard.selectors.spans import span_sums
from dashboard.selectors.store import Metric, names_of, series_of

_ENDS = ("freed", "dropped")


@dataclass(frozen=True)
class Flow:
    """`origin` is a tier, "computed" or "found"; `to` a tier, "freed" (another tier has the block) or "dropped"."""

    origin: str
    to: str
    tokens: int


def flows(period: Period, *, engine: str | None = None, model_name: str | None = None) -> list[Flow] | None:
    """What moved, the most first. None where no engine tells it.

    What went from tier to tier is told by both sides: counted where it came to, so that a copy that stayed behind
    counts, too.
    """
    series = series_of((Metric.ENTERED_TOKENS, Metric.LEFT_TOKENS), engine=engine, model_name=model_name)
    names = names_of(series, "metric", "cache_tier", "detail")
    if not names:
        return None
    found: dict[tuple[str, str], int] = {}
    for series_id, tokens in span_sums(names, period).items():
        metric, tier, other = names[series_id]
        if metric == Metric.ENTERED_TOKENS or other in _ENDS:
            way = (other, tier) if metric == Metric.ENTERED_TOKENS else (tier, other)
            found[way] = found.get(way, 0) + tokens
    moved = [Flow(origin, to, tokens) for (origin, to), tokens in found.items()]
    return sorted(moved, key=lambda flow: (-flow.tokens, flow.origin, flow.to))
