"""One look at one engine run: what a source yields and the recorder books. Knows no database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.sources.adapter import Adapted, Key, shortened

MAX_ENGINE = 130


@dataclass(frozen=True)
class Reading:
    """The counters and gauges of one engine run at one moment.

    `starts_from_zero` tells that this run's counters began at 0 when its engine started and that nobody booked them
    before: its first reading is an increase. A watched engine's first reading is only what increases are measured from.
    `is_dated`: somebody else took it and says when; one that is not newer than the last is the same again.
    """

    engine: str
    boot_id: str
    at: datetime
    starts_from_zero: bool
    computed: str
    is_dated: bool = False
    counters: Mapping[Key, int] = field(default_factory=dict)
    gauges: Mapping[Key, int] = field(default_factory=dict)


def readings(
    adapted: Adapted,
    *,
    at: datetime,
    prefix: str,
    boot_id: str = "",
    starts_from_zero: bool = False,
    is_dated: bool = False,
) -> list[Reading]:
    """One reading an engine. `prefix` names watched engines ("prod" + "0" → "prod/0"); "" keeps their own names."""
    return [
        Reading(
            engine=engine_name(prefix, label),
            boot_id=boot_id,
            at=at,
            starts_from_zero=starts_from_zero,
            computed=adapted.computed,
            is_dated=is_dated,
            counters=_of(adapted.counters, label),
            gauges=_of(adapted.gauges, label),
        )
        for label in sorted({engine for engine, _ in adapted.models})
    ]


def engine_name(prefix: str, label: str) -> str:
    return shortened("/".join(filter(None, (prefix, label))), MAX_ENGINE)


def _of(values: Mapping[Key, int], engine: str) -> dict[Key, int]:
    return {key: value for key, value in values.items() if key.engine == engine}


def total_samples(all_readings: Iterable[Reading]) -> int:
    return sum(len(reading.counters) + len(reading.gauges) for reading in all_readings)
