"""What each tier did in a period, what its loads and stores took, and what computing took instead. Reads only.

None means that no engine told it, which is not 0.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from dashboard.selectors.latency import quantile
from dashboard.selectors.period import Period
from dashboard.selectors.spans import span_sums
from dashboard.selectors.store import Metric, names_of, series_of

TIERS = ("gpu", "cpu", "disk", "remote")
_MICROSECONDS = 1_000_000
METRICS = (
    *(Metric.PROMPT_TOKENS, Metric.HIT_TOKENS, Metric.PREFILL_TOKENS, Metric.PREFILL_MICROSECONDS),
    *(Metric.LOADED_BLOCKS, Metric.LOADED_BYTES, Metric.LOAD_MICROSECONDS, Metric.LOAD_TIMES),
    *(Metric.STORED_BLOCKS, Metric.STORED_BYTES, Metric.STORE_MICROSECONDS, Metric.TIER_ERRORS, Metric.GIVEN_UP),
    *(Metric.EVICTED_BLOCKS, Metric.SKIPPED_TOKENS, Metric.MISSED_TOKENS, Metric.ENTERED_TOKENS, Metric.LEFT_TOKENS),
)

Facts = Mapping[tuple[str, str, str], int]  # (metric, cache_tier, detail) → Σ value


@dataclass(frozen=True)
class TierCost:
    """One tier over a period, all chosen engines together.

    `loaded_tokens` began their way to gpu; `saved_seconds` is the prefill that its hits stood for less its loads,
    engine by engine, None where no engine with hits here told what its prefill takes. `load_times` are loads of one
    block by upper bound in seconds. `elsewhere_hit_tokens` are of engines that do not tell what they load here.
    """

    tier: str
    hit_tokens: int = 0
    loaded_blocks: int | None = None
    loaded_bytes: int | None = None
    loaded_tokens: int | None = None
    load_seconds: float | None = None
    load_times: Mapping[float, int] = field(default_factory=dict)
    stored_blocks: int | None = None
    stored_bytes: int | None = None
    store_seconds: float | None = None
    num_errors: Mapping[str, int] | None = None
    num_given_up: int | None = None
    num_evicted: Mapping[str, int] | None = None
    skipped_tokens: int | None = None
    missed_tokens: int | None = None
    entered_tokens: Mapping[str, int] | None = None
    left_tokens: Mapping[str, int] | None = None
    saved_seconds: float | None = None
    is_partly_saved: bool = False
    elsewhere_hit_tokens: int = 0

    @property
    def load_p50(self) -> float | None:
        return quantile(0.5, self.load_times)

    @property
    def load_p95(self) -> float | None:
        return quantile(0.95, self.load_times)

    @property
    def load_seconds_a_token(self) -> float | None:
        """None where nothing was loaded."""
        return self.load_seconds / self.loaded_tokens if self.load_seconds is not None and self.loaded_tokens else None


@dataclass(frozen=True)
class Costs:
    """All tiers of the chosen engines; `prefill_*` are the computed tokens that were timed, None where none tells."""

    prompt_tokens: int
    prefill_tokens: int | None
    prefill_seconds: float | None
    tiers: Mapping[str, TierCost]

    @property
    def prefill_seconds_a_token(self) -> float | None:
        return (
            self.prefill_seconds / self.prefill_tokens
            if self.prefill_seconds is not None and self.prefill_tokens
            else None
        )


class _Told:
    """The sums of one or more engines, by (metric, tier) and then detail; what is not there is not told."""

    def __init__(self, many: Collection[Facts]) -> None:
        self._sums: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for facts in many:
            for (metric, tier, detail), value in facts.items():
                self._sums[metric, tier][detail] += value

    def split(self, metric: str, tier: str) -> dict[str, int] | None:
        """By detail."""
        found = self._sums.get((metric, tier))
        return None if found is None else dict(found)

    def number(self, metric: str, tier: str = "") -> int | None:
        found = self.split(metric, tier)
        return None if found is None else sum(found.values())

    def seconds(self, metric: str, tier: str = "") -> float | None:
        number = self.number(metric, tier)
        return None if number is None else number / _MICROSECONDS


def tier_costs(
    period: Period, *, engine: str | None = None, model_name: str | None = None, metrics: Collection[str] = METRICS
) -> Costs:
    """What `metrics` leave out is None, as if nobody told it."""
    models = _read(period, engine, model_name, metrics)
    told = _Told(models)
    each = [_Told([facts]) for facts in models]
    return Costs(
        prompt_tokens=told.number(Metric.PROMPT_TOKENS) or 0,
        prefill_tokens=told.number(Metric.PREFILL_TOKENS),
        prefill_seconds=told.seconds(Metric.PREFILL_MICROSECONDS),
        tiers={tier: _by_engine(_tier(told, tier), each) for tier in TIERS},
    )


def _read(period: Period, engine: str | None, model_name: str | None, metrics: Collection[str]) -> list[Facts]:
    """Every fact that is told, also those that did not move, engine by engine and model by model."""
    names = names_of(
        series_of(metrics, engine=engine, model_name=model_name),
        *("engine", "model_name", "metric", "cache_tier", "detail"),
    )
    sums = span_sums(names, period)
    models: dict[tuple[str, str], dict[tuple[str, str, str], int]] = defaultdict(lambda: defaultdict(int))
    for series_id, (of_engine, of_model, metric, tier, detail) in names.items():
        models[of_engine, of_model][metric, tier, detail] += sums.get(series_id, 0)
    return list(models.values())


def _tier(told: _Told, tier: str) -> TierCost:
    times = told.split(Metric.LOAD_TIMES, tier) or {}
    into_gpu = told.split(Metric.ENTERED_TOKENS, "gpu") or {}
    return TierCost(
        tier,
        hit_tokens=told.number(Metric.HIT_TOKENS, tier) or 0,
        loaded_blocks=told.number(Metric.LOADED_BLOCKS, tier),
        loaded_bytes=told.number(Metric.LOADED_BYTES, tier),
        loaded_tokens=into_gpu.get(tier),
        load_seconds=told.seconds(Metric.LOAD_MICROSECONDS, tier),
        load_times={float(bound): count for bound, count in times.items()},
        stored_blocks=told.number(Metric.STORED_BLOCKS, tier),
        stored_bytes=told.number(Metric.STORED_BYTES, tier),
        store_seconds=told.seconds(Metric.STORE_MICROSECONDS, tier),
        num_errors=told.split(Metric.TIER_ERRORS, tier),
        num_given_up=told.number(Metric.GIVEN_UP, tier),
        num_evicted=told.split(Metric.EVICTED_BLOCKS, tier),
        skipped_tokens=told.number(Metric.SKIPPED_TOKENS, tier),
        missed_tokens=told.number(Metric.MISSED_TOKENS, tier),
        entered_tokens=told.split(Metric.ENTERED_TOKENS, tier),
        left_tokens=told.split(Metric.LEFT_TOKENS, tier),
    )


def _by_engine(tier: TierCost, models: Collection[_Told]) -> TierCost:
    """Engines compute at their own speeds, so that each one's hits are worth its own seconds; some tell hits alone."""
    hits = [(told, number) for told in models if (number := told.number(Metric.HIT_TOKENS, tier.tier))]
    saved = [_saved(told, tier.tier) for told, _ in hits]
    known = [seconds for seconds in saved if seconds is not None]
    return replace(
        tier,
        saved_seconds=sum(known) if known else None,
        is_partly_saved=bool(known) and len(known) < len(saved),
        elsewhere_hit_tokens=sum(
            number for told, number in hits if told.number(Metric.LOADED_BLOCKS, tier.tier) is None
        ),
    )


def _saved(told: _Told, tier: str) -> float | None:
    hits, tokens = told.number(Metric.HIT_TOKENS, tier), told.number(Metric.PREFILL_TOKENS)
    seconds = told.seconds(Metric.PREFILL_MICROSECONDS)
    if not tokens or seconds is None or hits is None:
        return None
    return hits * seconds / tokens - (told.seconds(Metric.LOAD_MICROSECONDS, tier) or 0.0)
