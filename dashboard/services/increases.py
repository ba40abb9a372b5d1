"""How much a counter grew since it was last seen, and the state that this is measured from. Knows no buckets."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import CounterState, EngineRun, Series, Source
from dashboard.sources.adapter import Key
from dashboard.sources.reading import Reading
from dashboard.sources.rules import Metric

_BATCH = 200


def increase(previous: int | None, value: int, *, is_baseline: bool) -> int:
    """Tokens, requests, bytes since `previous`. A smaller value is a restart: all of it is new (as PromQL has it).

    A counter never seen before started from 0, except at the first look at an engine that ran before anybody looked.
    """
    if previous is None:
        return 0 if is_baseline else value
    return value - previous if value >= previous else value


@dataclass(frozen=True)
class Counters:
    """The increases of one reading, by key; derived computed tokens included."""

    increases: Mapping[Key, int]
    series_ids: Mapping[Key, int]


def take_increases(source: Source, run: EngineRun, reading: Reading, *, is_first: bool) -> Counters:
    """Stores the new values and returns what they grew by. Must run inside the recording's transaction."""
    ids = series_ids(source, reading)
    states = dict(CounterState.objects.filter(run=run).values_list("series_id", "value"))
    is_baseline = is_first and not reading.starts_from_zero
    renamed = _renamed(run, reading, ids, states)
    before = states | {new: states[old] for new, old in renamed.items()}
    grown = {
        key: increase(before.get(ids[key]), value, is_baseline=is_baseline) for key, value in reading.counters.items()
    }
    CounterState.objects.filter(run=run, series_id__in=renamed.values()).delete()  # the old name may come back
    _store_states(run, {ids[key]: value for key, value in reading.counters.items()}, states)
    return Counters(with_derived(reading, grown), ids)


def _renamed(run: EngineRun, reading: Reading, ids: Mapping[Key, int], states: Mapping[int, int]) -> dict[int, int]:
    """New series id → old, of counters that only have a new model name.

    A model that is served under another name keeps its counters: one that comes, not smaller than the one of its kind
    that is gone, goes on from there. Its whole value would otherwise be counted a second time.
    """
    new = [key for key in reading.counters if ids[key] not in states]
    gone = states.keys() - {ids[key] for key in reading.counters}
    if not (new and gone):
        return {}
    went: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for pk, _, *kind in Series.objects.filter(pk__in=gone, engine=run.engine).values_list("pk", *_COLUMNS):
        went[tuple(kind)].append(pk)
    come = Counter(_columns(key)[1:] for key in new)
    pairs = {key: went[kind] for key in new if come[kind := _columns(key)[1:]] == len(went.get(kind, ())) == 1}
    return {ids[key]: old for key, (old,) in pairs.items() if reading.counters[key] >= states[old]}


def _store_states(run: EngineRun, values: Mapping[int, int], states: Mapping[int, int]) -> None:
    changed = [
        CounterState(run=run, series_id=series_id, value=value)
        for series_id, value in sorted(values.items())
        if states.get(series_id) != value
    ]
    CounterState.objects.bulk_create(
        changed, batch_size=_BATCH, update_conflicts=True, update_fields=["value"], unique_fields=["run", "series"]
    )


def with_derived(reading: Reading, grown: Mapping[Key, int]) -> dict[Key, int]:
    """Where an engine does not tell computed tokens but tells all hits, they are what is left of its prompt tokens.

    Taken from the increases, not from the totals: prompt = Σ hit + computed then holds in every bucket, restart or not.
    """
    result = dict(grown)
    if reading.computed != "derived":
        return result
    for key in grown:
        if key.metric == Metric.PROMPT_TOKENS:
            hits = sum(
                value
                for other, value in grown.items()
                if other.metric == Metric.HIT_TOKENS and other.model_name == key.model_name
            )
            result[derived_key(key)] = grown[key] - hits
    return result


def derived_key(prompt: Key) -> Key:
    return Key(prompt.engine, prompt.model_name, Metric.COMPUTED_TOKENS.value)


def observed_keys(reading: Reading) -> list[Key]:
    """One `scrapes` series a model: a bucket with it was observed, whatever else it holds."""
    models = {key.model_name for key in (*reading.counters, *reading.gauges)}
    return [Key(reading.engine, name, Metric.SCRAPES.value) for name in sorted(models)]


def series_ids(source: Source, reading: Reading) -> dict[Key, int]:
    """The id of every series this reading touches, by the reading's own keys; missing series are created."""
    wanted = {*reading.counters, *reading.gauges, *observed_keys(reading)}
    wanted |= {derived_key(key) for key in reading.counters if key.metric == Metric.PROMPT_TOKENS}
    known = _known_series(source, reading.engine)
    missing = {_columns(key) for key in wanted} - known.keys()
    if missing:
        Series.objects.bulk_create(
            (Series(source=source, engine=reading.engine, **dict(zip(_COLUMNS, row, strict=True))) for row in missing),
            batch_size=_BATCH,
            ignore_conflicts=True,
        )
        known = _known_series(source, reading.engine)
    return {key: known[_columns(key)] for key in wanted}


_COLUMNS = ("model_name", "metric", "cache_tier", "detail")


def _columns(key: Key) -> tuple[str, ...]:
    return (key.model_name, key.metric, key.cache_tier, key.detail)


def _known_series(source: Source, engine: str) -> dict[tuple[str, ...], int]:
    rows = Series.objects.filter(source=source, engine=engine).values_list("pk", *_COLUMNS)
    return {tuple(columns): pk for pk, *columns in rows}
