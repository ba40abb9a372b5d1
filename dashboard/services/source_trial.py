"""Reads a source now and tells what would be made of it. Records nothing: the scheduled scrapes do."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis

from dashboard.models import Source
from dashboard.sources.adapter import Adapted
from dashboard.sources.detection import read
from dashboard.sources.embedded import published
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError, fetch
from dashboard.sources.summary import summary
from dashboard.sources.watched import Fetch, read_watched


@dataclass(frozen=True)
class Trial:
    """`engines` as `manage.py adapt` prints them; `problems` are sentences, some of them fatal."""

    kind: str
    engines: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


def try_source(source: Source, *, now: datetime, connection: redis.Redis, fetch_text: Fetch = fetch) -> Trial:
    """Takes at most as long as one scrape may take. Never raises for what the other side does."""
    try:
        if source.kind == Source.Kind.EMBEDDED:
            return _embedded(connection, now)
        return _trial(read_watched(source.url, source.kind, connection, fetch_text))
    except (ScrapeError, ExpositionError) as error:
        return Trial(source.get_kind_display(), (), (str(error),))
    except redis.RedisError as error:
        return Trial(source.get_kind_display(), (), (f"Valkey cannot be reached ({type(error).__name__}).",))


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
