"""How much a counter grew since it was last seen, and which series a reading touches. Knows no buckets, no states."""

from collections.abc import Iterable, Mapping

from django.db import transaction

from dashboard.models import Series, Source
from dashboard.services import totals
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


def wanted_keys(reading: Reading, observed: Iterable[Key] | None = None) -> set[Key]:
    """Of every series that this reading touches; `observed` where its `observed_keys` are known. One that it cannot
    tell is none: a series that is there says that it was told.
    """
    prompts = [key for key in reading.counters if key.metric == Metric.PROMPT_TOKENS]
    derived = [derived_key(key) for key in prompts] if reading.computed == "derived" else []
    observed = observed_keys(reading) if observed is None else observed
    return {*reading.counters, *reading.gauges, *observed, *derived}


def series_ids(source: Source, reading: Reading) -> dict[Key, int]:
    """The id of every series this reading touches, by the reading's own keys; missing series are created."""
    wanted = wanted_keys(reading)
    known = _known_series(source, reading.engine)
    missing = {columns_of(key) for key in wanted} - known.keys()
    if missing:
        create_series((source.pk, reading.engine, columns) for columns in missing)
        known = _known_series(source, reading.engine)
    return {key: known[columns_of(key)] for key in wanted}


Columns = tuple[str, ...]
COLUMNS = ("model_name", "metric", "cache_tier", "detail")


def columns_of(key: Key) -> Columns:
    return key[1:]


def create_series(places: Iterable[tuple[int, str, Columns]]) -> None:
    """By source, engine and columns; those that are there already stay."""
    new = (
        Series(source_id=source_id, engine=engine, **dict(zip(COLUMNS, columns, strict=True)))
        for source_id, engine, columns in sorted(places)
    )
    with transaction.atomic():
        Series.objects.bulk_create(totals.assign(new), batch_size=_BATCH, ignore_conflicts=True)


def _known_series(source: Source, engine: str) -> dict[Columns, int]:
    rows = Series.objects.filter(source=source, engine=engine).values_list("pk", *COLUMNS)
    return {tuple(columns): pk for pk, *columns in rows}
