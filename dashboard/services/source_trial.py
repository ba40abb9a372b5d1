"""Reads a source now and tells what would be made of it. Records nothing: the scheduled scrapes do."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import redis

from dashboard.models import Source
from dashboard.services.sources import target_of
from dashboard.sources.adapter import Adapted, adapt
from dashboard.sources.detection import adapter_for, read
from dashboard.sources.embedded import published
from dashboard.sources.exposition import ExpositionError, Sample, parse
from dashboard.sources.http import ScrapeError, fetch_target
from dashboard.sources.rules import Adapter
from dashboard.sources.summary import summary
from dashboard.sources.target import Target
from dashboard.sources.watched import Fetch, read_watched

MAX_SHOWN = 500  # samples of a text; vLLM has about 600 lines
MAX_LABELS = 12


@dataclass(frozen=True)
class Trial:
    """`engines` as `manage.py adapt` prints them; `problems` are sentences, some of them fatal."""

    kind: str
    engines: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
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
        trial = Trial(kind.label, (), (str(error),))
    return replace(trial, samples=samples)


def _line(sample: Sample) -> str:
    labels = ", ".join(f'{name}="{value[:60]}"' for name, value in list(sample.labels.items())[:MAX_LABELS])
    return f"{sample.name}{{{labels}}} {sample.value:g}"[:400]


def _trial(adapted: Adapted) -> Trial:
    told = summary(adapted)
    remarks = filter(None, (*adapted.problems, adapted.note))
    return Trial(Source.Kind(told["kind"]).label, tuple(told["engines"]), tuple(remarks))


def _embedded(connection: redis.Redis, now: datetime) -> Trial:
    """Every run that is published, also those that ended within the last hour."""
    entries, problems = published(connection, now)
    trials = [_trial(read(entry.exposition, Source.Kind.TIERSCOPE)) for entry in entries]
    return Trial(
        kind=Source.Kind.EMBEDDED.label,
        engines=tuple(engine for trial in trials for engine in trial.engines),
        problems=(*problems, *(problem for trial in trials for problem in trial.problems)),
    )
