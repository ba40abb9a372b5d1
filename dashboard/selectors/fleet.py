"""Every engine's tokens of a period by the tier they came from, and how its hit rate went. Reads only.

Two queries of sums whatever the number of engines; 500 of them are 3,000 series.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dashboard.selectors.period import Period
from dashboard.selectors.spans import span_sums
from dashboard.selectors.store import Metric, grouped, names_of, series_of

_SPARKS = 32  # points of a line that is 120 px wide
_STEPS = (
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    900,
    3_600,
    7_200,
    21_600,
    43_200,
    86_400,
    7 * 86_400,
    30 * 86_400,
    60 * 86_400,
)

Place = tuple[str, str]  # engine, model


@dataclass
class EngineTokens:
    """`computed_tokens` is None where the engine does not tell them, `hit_tokens` empty where it tells no hits; with
    neither there is no hit rate. `steps` are the (hit, prompt) tokens of each step of `sparks(period)`.
    """

    prompt_tokens: int = 0
    computed_tokens: int | None = None
    hit_tokens: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    steps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_told(self) -> bool:
        return self.computed_tokens is not None or bool(self.hit_tokens)

    @property
    def hit_rate(self) -> float | None:
        return _rate(sum(self.hit_tokens.values()), self.prompt_tokens) if self.is_told else None

    @property
    def rates(self) -> list[float | None]:
        """The hit rate of each step, None where nothing was asked."""
        return [_rate(hit, prompt) if self.is_told else None for hit, prompt in self.steps]


def engine_tokens(period: Period) -> dict[Place, EngineTokens]:
    """By engine and model: those that ever told prompt or hit tokens."""
    series = series_of((Metric.PROMPT_TOKENS, Metric.COMPUTED_TOKENS, Metric.HIT_TOKENS), engine=None, model_name=None)
    names = names_of(series, "engine", "model_name", "metric", "cache_tier")
    found: dict[Place, EngineTokens] = defaultdict(EngineTokens)
    sums = span_sums(names, period)
    for pk, (engine, model_name, metric, tier) in names.items():
        _book(found[engine, model_name], metric, tier, sums.get(pk, 0))
    _add_steps(found, names, sparks(period))
    return dict(found)


def _book(told: EngineTokens, metric: str, tier: str, tokens: int) -> None:
    if metric == Metric.PROMPT_TOKENS:
        told.prompt_tokens += tokens
    elif metric == Metric.COMPUTED_TOKENS:
        told.computed_tokens = (told.computed_tokens or 0) + tokens
    else:
        told.hit_tokens[tier] += tokens


def sparks(period: Period) -> Period:
    """Long steps: each is read from a coarse resolution."""
    shortest = (period.end - period.start) / _SPARKS
    return period.in_steps_of(next((step for step in _STEPS if step >= shortest), _STEPS[-1]))


def _add_steps(found: Mapping[Place, EngineTokens], names: Mapping[int, tuple[str, ...]], steps: Period) -> None:
    """From prompt and computed tokens where both are told: two series an engine instead of one a tier."""
    wanted = {pk: ((engine, model_name), metric) for pk, (engine, model_name, metric, _) in names.items()}
    parts = {pk: key for pk, key in wanted.items() if _is_needed(*key, found)}
    numbers = {key: number for number, key in enumerate(sorted(set(parts.values())))}
    rows = grouped({pk: numbers[key] for pk, key in parts.items()}, steps)
    sums = _by_slot(rows, list(numbers))
    for place, told in found.items():
        prompts, hits = sums[place, Metric.PROMPT_TOKENS], sums[place, Metric.HIT_TOKENS]
        if told.computed_tokens is not None:
            computed = sums[place, Metric.COMPUTED_TOKENS]
            hits = {slot: prompt - computed.get(slot, 0) for slot, prompt in prompts.items()}
        slots = range(len(steps.starts))
        told.steps = [(hits.get(slot, 0), prompts.get(slot, 0)) for slot in slots]


def _is_needed(place: Place, metric: str, found: Mapping[Place, EngineTokens]) -> bool:
    return metric != Metric.HIT_TOKENS or found[place].computed_tokens is None


def _by_slot(
    rows: Iterable[tuple[int, int, int, int]], keys: list[tuple[Place, str]]
) -> Mapping[tuple[Place, str], dict[int, int]]:
    sums: dict[tuple[Place, str], dict[int, int]] = defaultdict(dict)
    for slot, part, value, _ in rows:
        sums[keys[part]][slot] = value
    return sums


def _rate(hit: int, prompt: int) -> float | None:
    return hit / prompt if prompt > 0 else None
