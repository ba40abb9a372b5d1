"""Every engine and model that was ever recorded, its source, and how it stands now. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.models import EngineRun, Series, Source
from dashboard.selectors.engines import Fleet
from dashboard.selectors.source_states import SourceState, state_of, tells_still


@dataclass(frozen=True)
class EngineRow:
    """`state` is what an embedded engine says of itself ("offline" where it is not heard), else its source's state;
    "gone" where the source is read and does not tell the engine any more.
    """

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
    sources, seen = Source.objects.in_bulk(), _seen(engine)
    return [
        _row(engine, model_name, sources[source], alive, seen.get((source, engine), now), now)
        for engine, model_name, source in pairs.values_list("engine", "model_name", "source")
    ]


def _seen(engine: str | None) -> dict[tuple[int, str], datetime]:
    """When each watched engine was last seen live, by source and name."""
    runs = EngineRun.objects.exclude(source__kind=Source.Kind.EMBEDDED)
    if engine is not None:
        runs = runs.filter(engine=engine)
    return {(source, name): at for source, name, at in runs.values_list("source", "engine", "read_at")}


def _row(engine: str, model_name: str, source: Source, alive: Fleet, seen_at: datetime, now: datetime) -> EngineRow:
    return EngineRow(engine, model_name, source.name, source.read_as, _state(engine, source, alive, seen_at, now))


def _state(engine: str, source: Source, alive: Fleet, seen_at: datetime, now: datetime) -> str:
    if source.kind != Source.Kind.EMBEDDED:
        state = state_of(source, now)
        return (state if state is not SourceState.UP or tells_still(source, seen_at) else SourceState.GONE).value
    if alive.problem:
        return "unknown"
    return alive.engines[engine].status if engine in alive.engines else "offline"
