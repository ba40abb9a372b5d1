"""Reads a source now and tells what would be made of it. Records nothing: the scheduled scrapes do."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import redis

from dashboard.models import Source
from dashboard.services.sources import target_of
from dashboard.sources.adapter import Adapted, adapt
from dashboard.sources.detection import adapter_for, read
from dashboard.sources.embedded import published
from dashboard.sources.exposition import Exposition, ExpositionError, Sample, parse
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.rules import Adapter, Metric
from dashboard.sources.summary import summary
from dashboard.sources.target import Target
from dashboard.sources.watched import Fetch, read_watched

MAX_SHOWN = 500  # samples of a text; vLLM has about 600 lines
MAX_LABELS = 12
_OF_PROMPTS = frozenset({Metric.PROMPT_TOKENS.value, Metric.HIT_TOKENS.value, Metric.COMPUTED_TOKENS.value})


@dataclass(frozen=True)
class Trial:
    """`engines` as `manage.py adapt` prints them, `others` what else is told: engine, model, metric, tier, number;
    `problems` are sentences, some of them fatal.
    """

    kind: str
    engines: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
    others: tuple[tuple[str, str, str, str, int], ...] = ()
    samples: tuple[str, ...] = ()  # what the text has, for whoever types a mapping of it


def try_source(source: Source, *, now: datetime, connection: redis.Redis, fetch_text: Fetch = fetch_target) -> Trial:
    """Takes at most as long as one scrape may take. Never raises for what the other side does."""
    try:
        if source.kind == Source.Kind.EMBEDDED:
            return _embedded(connection, now)
        return _trial(read_watched(target_of(source), connection, fetch_text, now))
    except (ScrapeError, ExpositionError) as error:
        return Trial(source.get_kind_display(), (), (str(error),))
    except redis.RedisError as error:
        return Trial(source.get_kind_display(), (), (f"Valkey cannot be reached ({type(error).__name__}).",))


def try_mapping(url: str, typed: Adapter, *, fetch_text: Fetch = fetch_target) -> Trial:
    """What a mapping that is not saved yet makes of the text at `url`, and what else is in it."""
    kind = Source.Kind.MAPPING
    try:
        exposition = parse(fetch_text(Target(url, kind, typed)))
    except (ScrapeError, ExpositionError) as error:
        return Trial(kind.label, (), (str(error),))
    samples = tuple(_line(sample) for sample in exposition.samples[:MAX_SHOWN])
    try:
        trial = _trial(adapt(exposition, adapter_for(exposition, kind, typed)))
    except ExpositionError as error:
        return Trial(kind.label, (), (str(error),), samples=samples)
    return replace(trial, samples=samples, problems=(*trial.problems, *_idle_rows(exposition, typed)))


def _idle_rows(exposition: Exposition, typed: Adapter) -> Iterator[str]:
    """A sentence for each row that finds nothing: misspelt, or of a counter that begins with its first count."""
    for rule in typed.rules:
        if not any(sample.name == rule.name and rule.matches(sample.labels) for sample in exposition.samples):
            where = "".join(f" with {label}=“{value}”" for label, value in rule.where)
            yield f"No sample is called {rule.name}{where}: its row finds nothing in this text."


def _line(sample: Sample) -> str:
    labels = ", ".join(f'{name}="{value[:60]}"' for name, value in list(sample.labels.items())[:MAX_LABELS])
    return f"{sample.name}{{{labels}}} {_number(sample.value)}"[:400]


def _number(value: float) -> str:
    """A count with all its digits."""
    return str(int(value)) if value.is_integer() else f"{value:g}"


def _trial(adapted: Adapted) -> Trial:
    told = summary(adapted)
    remarks = filter(None, (*adapted.problems, adapted.note))
    return Trial(Source.Kind(told["kind"]).label, tuple(told["engines"]), tuple(remarks), tuple(_others(adapted)))


def _others(adapted: Adapted) -> Iterator[tuple[str, str, str, str, int]]:
    """Sums and sizes beside the tokens of prompts; of a histogram how many were counted."""
    sums: Counter[tuple[str, str, str, str]] = Counter()
    for key, value in (*adapted.counters.items(), *adapted.gauges.items()):
        if key.metric not in _OF_PROMPTS:
            sums[key.engine, key.model_name, key.metric.replace("_", " "), key.cache_tier] += value
    yield from ((*place, value) for place, value in sorted(sums.items()))


def _embedded(connection: redis.Redis, now: datetime) -> Trial:
    """Every run that is published, also those that ended within the last hour."""
    entries, problems = published(connection, now)
    trials = [_trial(read(entry.exposition, Source.Kind.TIERSCOPE)) for entry in entries]
    return Trial(
        kind=Source.Kind.EMBEDDED.label,
        engines=tuple(engine for trial in trials for engine in trial.engines),
        others=tuple(other for trial in trials for other in trial.others),
        problems=(*problems, *(problem for trial in trials for problem in trial.problems)),
    )
