"""The tokens of the engines that serve the same model, added up: hits over prompts, never a mean of rates.

Pure: adds up what selectors/fleet.py read.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from dashboard.selectors.fleet import EngineTokens, Place


@dataclass(frozen=True)
class ModelTokens:
    """`num_without_hits` engines were asked something and never tell what they hit: their prompts are in the sum."""

    tokens: EngineTokens
    num_without_hits: int
    num_without_prompts: int  # these tell hits, and no prompt tokens that they could be a share of


def by_model(engines: Mapping[Place, EngineTokens]) -> dict[str, ModelTokens]:
    """By the model's name, "" for engines whose source tells none."""
    groups: dict[str, list[EngineTokens]] = defaultdict(list)
    for (_, model_name), told in engines.items():
        groups[model_name].append(told)
    return {model_name: _model(group) for model_name, group in groups.items()}


def _model(engines: list[EngineTokens]) -> ModelTokens:
    return ModelTokens(
        added(engines),
        sum(told.prompt_tokens > 0 and not told.is_told for told in engines),
        sum(not told.prompt_tokens and any(told.hit_tokens.values()) for told in engines),
    )


def added(engines: Iterable[EngineTokens]) -> EngineTokens:
    """Σ of everything; computed tokens of those that tell them, None where none does."""
    total = EngineTokens()
    for told in engines:
        total.prompt_tokens += told.prompt_tokens
        if told.computed_tokens is not None:
            total.computed_tokens = (total.computed_tokens or 0) + told.computed_tokens
        for tier, tokens in told.hit_tokens.items():
            total.hit_tokens[tier] += tokens
        total.steps = [(a + b, c + d) for (a, c), (b, d) in zip_longest(total.steps, told.steps, fillvalue=(0, 0))]
    return total
