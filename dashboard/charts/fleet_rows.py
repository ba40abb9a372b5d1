"""The fleet's table: one row an engine and model, in words and in numbers to sort by. Knows no database."""

from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import COMPUTED, label_of, tiers_in, with_the_rest
from dashboard.selectors.engine_list import EngineRow
from dashboard.selectors.fleet import EngineTokens

# What is not as it should be comes first; an engine that was switched off is no news.
_WRONG = frozenset({"failing", "stale", "failed", "offline", "unknown"})


def fleet_rows(engines: Iterable[EngineRow], tokens: Mapping[tuple[str, str], EngineTokens]) -> list[dict[str, Any]]:
    """Worst first: those that cannot be read, then the lowest hit rate, then those that were asked nothing."""
    rows = [_row(engine, tokens.get((engine.engine, engine.model_name), EngineTokens())) for engine in engines]
    return sorted(rows, key=_badness)


def _badness(row: dict[str, Any]) -> tuple[Any, ...]:
    return (not row["is_wrong"], row["hit_rate"] is None, row["hit_rate"] or 0.0, row["engine"], row["model"])


def _row(engine: EngineRow, told: EngineTokens) -> dict[str, Any]:
    return {
        "engine": engine.engine,
        "model": engine.model_name,
        "kind": engine.kind,
        "state": engine.state,
        "is_wrong": is_wrong(engine),
        **token_cells(told),
    }


def is_wrong(engine: EngineRow) -> bool:
    return engine.state in _WRONG


def token_cells(told: EngineTokens) -> dict[str, Any]:
    """What a row says of tokens, whether it is an engine's or a model's."""
    return {
        "prompt_tokens": told.prompt_tokens,
        "prompt_text": words.count(told.prompt_tokens),
        "hit_rate": told.hit_rate,
        "hit_rate_text": words.percent(told.hit_rate),
        "origins": _origins(told),
        "rates": [None if rate is None else round(rate, 3) for rate in told.rates],
    }


def _origins(told: EngineTokens) -> list[dict[str, Any]]:
    """Parts of the prompt tokens that have any."""
    counted = [(tier, told.hit_tokens[tier]) for tier in tiers_in(dict(told.hit_tokens))]
    parts = with_the_rest([*counted, (COMPUTED, told.computed_tokens)], told.prompt_tokens)
    return [
        {"origin": origin, "label": label_of(origin), "tokens": tokens, "tokens_text": words.count(tokens)}
        for origin, tokens in parts
        if tokens
    ]
