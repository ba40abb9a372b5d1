"""Every engine and model that was ever recorded, its source, and how it stands now. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.models import Series, Source
from dashboard.selectors.engines import Fleet
from dashboard.selectors.source_states import state_of


@dataclass(frozen=True)
class EngineRow:
    """`state` is what an embedded engine says of itself ("offline" where it is not heard), else its source's state."""

    engine: str
    model_name: str
    source: str
    kind: str
    state: str


def engine_rows(alive: Fleet, now: datetime, *, engine: str | None = None) -> list[EngineRow]:
    """By name, then model; `engine` keeps one of them. A replay is none: it is not there now."""
    told = Series.objects.filter(metric=Series.Metric.SCRAPES).exclude(source__kind=Source.Kind.REPLAY)
    if engine is not None:
        told = told.filter(engine=engine)
    pairs = told.order_by("engine", "model_name")
    sources = Source.objects.in_bulk()
    return [
        _row(engine, model_name, sources[source], alive, now)
        for engine, model_name, source in pairs.values_list("engine", "model_name", "source")
    ]


def _row(engine: str, model_name: str, source: Source, alive: Fleet, now: datetime) -> EngineRow:
    return EngineRow(engine, model_name, source.name, source.read_as, _state(engine, source, alive, now))


def _state(engine: str, source: Source, alive: Fleet, now: datetime) -> str:
    if source.kind != Source.Kind.EMBEDDED:
        return state_of(source, now).value
    if alive.problem:
        return "unknown"
    return alive.engines[engine].status if engine in alive.engines else "offline"
