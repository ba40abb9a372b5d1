"""What is known of one engine beside its counts: its models, where it is read from, what it tells. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from dashboard.models import EngineRun, Series, Source
from dashboard.selectors.engine_list import EngineRow, engine_rows
from dashboard.selectors.engines import Fleet

Told = frozenset[tuple[str, str]]  # metric, tier


@dataclass(frozen=True)
class EngineFacts:
    """`rows` has one for each model; `told` is what it ever told; `read_at` when it was last seen."""

    name: str
    rows: tuple[EngineRow, ...]
    source: Source
    told: Told
    read_at: datetime | None

    @property
    def models(self) -> list[str]:
        return [row.model_name for row in self.rows if row.model_name]

    @property
    def is_own(self) -> bool:
        return self.source.kind == Source.Kind.EMBEDDED


def engine_facts(name: str, alive: Fleet, now: datetime) -> EngineFacts | None:
    """None for an engine that was never recorded, and for a replay, which is none."""
    rows = tuple(engine_rows(alive, now, engine=name))
    if not rows:
        return None
    series = Series.objects.filter(engine=name).exclude(source__kind=Source.Kind.REPLAY)
    seen = EngineRun.objects.filter(engine=name).exclude(source__kind=Source.Kind.REPLAY)
    return EngineFacts(
        name,
        rows,
        Source.objects.get(name=rows[0].source),
        frozenset(series.order_by().values_list("metric", "cache_tier").distinct()),
        seen.aggregate(at=Max("read_at"))["at"],
    )
