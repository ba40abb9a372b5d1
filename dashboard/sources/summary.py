"""What an adapter makes of a text, as the plain dictionary that `manage.py adapt` prints. Stores nothing."""

from typing import Any

from dashboard.sources.adapter import HIT_TIERS, Adapted, Key
from dashboard.sources.rules import Metric


def summary(adapted: Adapted) -> dict[str, Any]:
    """{"kind", "engines": [{"engine", "model_name", "prompt_tokens", "computed_tokens", "hit_tokens": {tier: int}}]}.

    `computed_tokens` is None where it is neither told nor follows from what is told.
    """
    return {"kind": str(adapted.kind), "engines": [_engine(adapted, *model) for model in adapted.models]}


def _engine(adapted: Adapted, engine: str, model_name: str) -> dict[str, Any]:
    def count(metric: Metric, tier: str = "") -> int | None:
        return adapted.counters.get(Key(engine, model_name, metric.value, tier))

    hits = {str(tier): count(Metric.HIT_TOKENS, tier) or 0 for tier in HIT_TIERS}
    prompt = count(Metric.PROMPT_TOKENS)
    computed = count(Metric.COMPUTED_TOKENS)
    if adapted.computed == "derived" and prompt is not None and prompt >= sum(hits.values()):
        computed = prompt - sum(hits.values())
    return {
        "engine": engine,
        "model_name": model_name,
        "prompt_tokens": prompt,
        "computed_tokens": computed,
        "hit_tokens": hits,
    }
