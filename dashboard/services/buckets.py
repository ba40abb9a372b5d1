"""Adds amounts to time buckets at every resolution. Knows nothing about counters, engines or sources.

The caller holds the one lock under which these series are written (a source's row), inside one transaction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection

from dashboard.models import Bucket

_BATCH = 200  # rows a statement: SQLite takes 32,766 variables, PostgreSQL 65,535


@dataclass(frozen=True)
class Amount:
    """`value` more of a series, observed at Unix second `at`; `num_samples` readings went into it."""

    series_id: int
    at: int
    value: int
    num_samples: int = 1


Place = tuple[int, int, int]  # series_id, resolution, start_at
Sums = Mapping[Place, tuple[int, int]]  # place → Σ value, Σ num_samples


def sums_by_place(amounts: Iterable[Amount], oldest: Mapping[int, int] | None = None) -> Sums:
    """What these come to at every resolution. Needs no lock: make them before one is taken.

    `oldest`: resolution → the first start that is still kept; what is older is left out of that resolution only.
    """
    sums: dict[Place, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for amount in amounts:
        for resolution in Bucket.Resolution.values:
            place = (amount.series_id, resolution, amount.at - amount.at % resolution)
            value, num_samples = sums[place]
            sums[place] = (value + amount.value, num_samples + amount.num_samples)
    return {place: sum_ for place, sum_ in sums.items() if place[2] >= oldest[place[1]]} if oldest else sums


def add_amounts(amounts: Iterable[Amount], oldest: Mapping[int, int] | None = None) -> None:
    """Must run inside a transaction."""
    add_sums(sums_by_place(amounts, oldest))


def add_sums(sums: Sums) -> None:
    """One upsert for all of them. Must run inside a transaction."""
    places = sorted(sums.items())
    with connection.cursor() as cursor:
        for start in range(0, len(places), _BATCH):
            rows = places[start : start + _BATCH]
            values = ", ".join(["(%s, %s, %s, %s, %s)"] * len(rows))
            cursor.execute(_ADD.format(values=values), [number for place, amount in rows for number in place + amount])


# SQLite and PostgreSQL both speak this; reading first what is there took half the time of a recording.
_ADD = """
INSERT INTO dashboard_bucket (series_id, resolution, start_at, value, num_samples) VALUES {values}
ON CONFLICT (series_id, resolution, start_at) DO UPDATE SET
value = dashboard_bucket.value + excluded.value, num_samples = dashboard_bucket.num_samples + excluded.num_samples
"""
