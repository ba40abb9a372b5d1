"""The table of models: one row a model, its engines added up, in words and in numbers to sort by. Knows no database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.charts import words
from dashboard.charts.fleet_rows import is_wrong, token_cells
from dashboard.selectors.engine_list import EngineRow
from dashboard.selectors.fleet import EngineTokens
from dashboard.selectors.model_tokens import ModelTokens

UNKNOWN = "unknown"
_SHOWN_ENGINES = 5  # of those without a model: the fleet cannot be asked for them


def model_rows(engines: Iterable[EngineRow], models: Mapping[str, ModelTokens]) -> list[dict[str, Any]]:
    """Worst first: those of which no engine can be read, then the lowest hit rate, then those asked nothing."""
    groups: dict[str, list[EngineRow]] = defaultdict(list)
    for engine in engines:
        groups[engine.model_name].append(engine)
    nothing = ModelTokens(EngineTokens(), 0, 0)
    rows = [_row(name, group, models.get(name, nothing)) for name, group in groups.items()]
    return sorted(rows, key=_badness)


def _badness(row: dict[str, Any]) -> tuple[Any, ...]:
    is_lost = row["num_wrong"] == row["num_engines"]
    return (not is_lost, row["hit_rate"] is None, row["hit_rate"] or 0.0, row["model"])


def _row(model_name: str, engines: list[EngineRow], told: ModelTokens) -> dict[str, Any]:
    num_wrong = sum(map(is_wrong, engines))
    return {
        "model": model_name,
        "name": model_name or UNKNOWN,
        "num_engines": len(engines),
        "num_wrong": num_wrong,
        "engine_names": [] if model_name else sorted(engine.engine for engine in engines)[:_SHOWN_ENGINES],
        "engines_text": words.counted(len(engines), "engine"),
        "wrong_text": f"{num_wrong:,} not read now" if num_wrong else "",
        "note": " ".join(_notes(model_name, told)),
        **token_cells(told.tokens),
    }


def _notes(model_name: str, told: ModelTokens) -> Iterable[str]:
    if not model_name:
        yield "Their sources tell no model."
    if told.num_without_hits and told.tokens.is_told:
        number = told.num_without_hits
        yield f"{words.counted(number, 'engine')} {_tell(number)} no hits: their prompt tokens count as not hit."
    if told.num_without_prompts and told.tokens.prompt_tokens:
        number = told.num_without_prompts
        yield f"{words.counted(number, 'engine')} {_tell(number)} hits and no prompt tokens: the rate is too high."


def _tell(number: int) -> str:
    return "tells" if number == 1 else "tell"
