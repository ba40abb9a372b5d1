"""Prompt tokens by the tier they came from, and what share that is. Reads only.

No value is not zero: a step in which no source was observed is None, and so is a rate where nothing was asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, counters_of, in_tier_order, sums

Values = list[int | None]
Rates = list[float | None]
_METRICS = (Metric.SCRAPES, Metric.PROMPT_TOKENS, Metric.COMPUTED_TOKENS, Metric.HIT_TOKENS)


def token_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "prompt", "computed", "hit": {tier: tokens}}: tokens a step, None where nothing was observed, and
    everywhere for computed tokens that no engine tells.
    """
    filters = {"engine": engine, "model_name": model_name}
    found = sums(counters_of(_METRICS, **filters), period, "metric", "cache_tier")
    observed = found.get((Metric.SCRAPES, ""), {})
    starts = period.starts

    def values(metric: str, tier: str = "") -> Values:
        amounts = found.get((metric, tier), {})
        return [amounts.get(slot, 0) if slot in observed else None for slot in range(len(starts))]

    tiers = in_tier_order({tier for metric, tier in found if metric == Metric.HIT_TOKENS})
    computed = (Metric.COMPUTED_TOKENS, "")
    is_told = computed in found or counters_of((Metric.COMPUTED_TOKENS,), **filters).exists()
    return {
        "starts": starts,
        "prompt": values(Metric.PROMPT_TOKENS),
        "computed": values(*computed) if is_told else [None] * len(starts),
        "hit": {tier: values(Metric.HIT_TOKENS, tier) for tier in tiers},
    }


def hit_rate_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "total", "tiers": {tier: rates}, "conditional": {tier: rates}}.

    A tier's rate is its hit tokens / all prompt tokens; its conditional rate divides by the tokens that reached it.
    Rates are never clamped: above 1 the engine counts wrongly, and that has to be seen.
    """
    found = rates(token_series(period, engine=engine, model_name=model_name))
    if not counters_of((Metric.HIT_TOKENS, Metric.COMPUTED_TOKENS), engine=engine, model_name=model_name).exists():
        found["total"] = [None] * len(period.starts)  # no engine tells what it hit
    return found


def rates(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """The rates of what `token_series` returned."""
    prompt: Values = tokens["prompt"]
    hits: dict[str, Values] = tokens["hit"]
    total = [sum(each or 0 for each in at) for at in zip(*hits.values(), strict=True)] if hits else [0] * len(prompt)
    return {
        "starts": tokens["starts"],
        "total": _divide(total, prompt),
        "tiers": {tier: _divide(values, prompt) for tier, values in hits.items()},
        "conditional": _conditional(prompt, hits),
    }


def _conditional(prompt: Values, hits: Mapping[str, Values]) -> dict[str, Rates]:
    """Tokens reach a tier that no faster tier had. Unattributed hits came from no known place: no such rate."""
    reached = [tokens or 0 for tokens in prompt]
    result = {}
    for tier, values in hits.items():
        if tier == "unattributed":
            continue
        result[tier] = _divide(values, reached)
        reached = [left - (hit or 0) for left, hit in zip(reached, values, strict=True)]
    return result


def _divide(numerators: Sequence[int | None], denominators: Sequence[int | None]) -> Rates:
    return [
        numerator / denominator if denominator and denominator > 0 and numerator is not None else None
        for numerator, denominator in zip(numerators, denominators, strict=True)
    ]
