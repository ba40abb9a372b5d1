"""Which engines and models the series know, and how fresh each source's numbers are. Reads only."""

from datetime import datetime
from typing import Any

from django.db.models import Max

from dashboard.models import Replay, Resolution, Series, Source
from dashboard.selectors.runs import runs
from dashboard.selectors.source_states import NOT_READ, describe, state_of
from dashboard.selectors.store import Counters, Metric, counters_of, series_of


def engines_and_models() -> dict[str, list[str]]:
    """{"engines", "replays", "models"}: every name that has a series, sorted; replays apart, newest first."""
    told = Series.objects.filter(metric=Series.Metric.SCRAPES).exclude(source__kind=Source.Kind.REPLAY)
    pairs = told.order_by().values_list("engine", "model_name").distinct()
    return {
        "engines": sorted({engine for engine, _ in pairs}),
        "replays": list(Replay.objects.exclude(extent={}).values_list("source__name", flat=True)),
        "models": sorted({model_name for _, model_name in pairs if model_name}),
    }


def has_traffic(engine: str | None = None) -> bool:
    """Whether any prompt token was ever counted and is still kept; of a replay where that is the engine."""
    named = series_of((Metric.PROMPT_TOKENS,), engine=engine, model_name=None) if engine else Series.objects.none()
    return _has_any(counters_of((Metric.PROMPT_TOKENS,), engine=None, model_name=None)) or _has_any(named)


def _has_any(series: Counters) -> bool:
    ids = list(series.values_list("pk", flat=True))
    return any(any(run.values) for run in runs(ids, Resolution.DAY, series.model))


def freshness(now: datetime) -> list[dict[str, Any]]:
    """[{"source", "state", "sentence", "last_ok_at", "last_observed_at", "age_seconds", "is_stale"}], by name.

    `last_ok_at`: when reading it last went well; `last_observed_at`: when an engine behind it was last seen (the
    embedded source can be read while no engine runs). Unix seconds, None where it never was. What is off is not stale.
    Replays are read from nowhere.
    """
    read = Source.objects.exclude(kind=Source.Kind.REPLAY)
    sources = read.annotate(observed_at=Max("runs__read_at")).order_by("name")
    return [_freshness(source, now) for source in sources]


def _freshness(source: Any, now: datetime) -> dict[str, Any]:
    state = state_of(source, now)
    return {
        "source": source.name,
        "state": state.value,
        "sentence": describe(source, now),
        "last_ok_at": _unix(source.last_ok_at),
        "last_observed_at": _unix(source.observed_at),
        "age_seconds": (now - source.observed_at).total_seconds() if source.observed_at else None,
        "is_stale": state in NOT_READ,
    }


def _unix(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
