"""The newest counters of watched engines that are read now, as they told them. Reads only; knows no metrics text."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from dashboard import counters
from dashboard.models import EngineRun, Series, Source
from dashboard.selectors.source_states import SourceState, state_of, tells_still

Metric = Series.Metric
_TOLD = (Metric.PROMPT_TOKENS, Metric.HIT_TOKENS, Metric.COMPUTED_TOKENS, Metric.GENERATED_TOKENS)


@dataclass(frozen=True)
class Counter:
    engine: str
    model_name: str
    metric: str
    cache_tier: str
    value: int


@dataclass(frozen=True)
class Watched:
    """`is_up` by name of every source that is meant to be read; `counters` of those that are up only."""

    is_up: dict[str, bool]
    counters: list[Counter]


def watched(now: datetime) -> Watched:
    """Three queries, whatever the number of engines."""
    meant = Source.objects.exclude(kind__in=(Source.Kind.EMBEDDED, Source.Kind.REPLAY)).filter(
        is_enabled=True, gone_at=None
    )
    states = {source: state_of(source, now) for source in meant}
    up = {source.pk: source for source, state in states.items() if state is SourceState.UP}
    return Watched({source.name: source.pk in up for source in states}, list(_counters(up)))


def _counters(sources: dict[int, Source]) -> Iterable[Counter]:
    told: dict[int, list[int]] = defaultdict(list)
    source_ids = list(sources)
    runs = EngineRun.objects.filter(source__in=source_ids).values_list("source", "read_at", "counters")
    for source_id, read_at, packed in runs:
        if not tells_still(sources[source_id], read_at):
            continue
        with suppress(counters.CountersError):  # the recorder says so where the source is listed
            for series_id, value in counters.unpack(packed).items():
                told[series_id].append(value)
    series = Series.objects.filter(source__in=source_ids, metric__in=_TOLD).order_by("pk")
    columns = ("pk", "engine", "model_name", "metric", "cache_tier")
    for pk, engine, model_name, metric, tier in series.values_list(*columns):
        yield from (Counter(engine, model_name, metric, tier, value) for value in told.get(pk, ()))
