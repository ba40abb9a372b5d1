"""Adds amounts to time buckets at every resolution. Knows nothing about counters, engines or sources.

The caller holds the one lock under which these series are written (a source's row), inside one transaction.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dashboard.models import Bucket
from dashboard.services.rows import execute_rows
from dashboard.services.totals import totals_of


@dataclass(frozen=True)
class Amount:
    """`value` more of a series, observed at Unix second `at`; `num_samples` readings went into it."""

    series_id: int
    at: int
    value: int
    num_samples: int = 1


Place = tuple[int, int, int]  # series_id, resolution, start_at
_NOTHING = (0, 0)
ByPlace = Mapping[Place, tuple[int, int]]  # place → Σ value, Σ num_samples


@dataclass(frozen=True)
class Sums:
    """What is to be added to series, and to the totals that these belong to."""

    buckets: ByPlace
    totals: ByPlace


def sums_by_place(amounts: Iterable[Amount], oldest: Mapping[int, int] | None = None) -> Sums:
    """What these come to at every resolution. Needs no lock: make them before one is taken.

    `oldest`: resolution → the first start that is still kept; what is older is left out of that resolution only.
    """
    sums: dict[Place, tuple[int, int]] = {}
    for amount in amounts:
        for resolution, start_at in _starts(amount.at):
            place = (amount.series_id, resolution, start_at)
            value, num_samples = sums.get(place, _NOTHING)
            sums[place] = (value + amount.value, num_samples + amount.num_samples)
    return with_totals(
        {place: sum_ for place, sum_ in sums.items() if place[2] >= oldest[place[1]]} if oldest else sums
    )


@lru_cache(maxsize=256)
def _starts(at: int) -> list[tuple[int, int]]:
    """Of the buckets that a second lies in; most amounts of a group are of the same few seconds."""
    return [(resolution, at - at % resolution) for resolution in Bucket.Resolution.values]


def with_totals(buckets: ByPlace) -> Sums:
    of = totals_of({series_id for series_id, _, _ in buckets})
    totals: dict[Place, tuple[int, int]] = {}
    for (series_id, resolution, start_at), (more, more_samples) in buckets.items():
        if (total_id := of.get(series_id)) is not None:
            place = (total_id, resolution, start_at)
            value, num_samples = totals.get(place, _NOTHING)
            totals[place] = (value + more, num_samples + more_samples)
    return Sums(buckets, totals)


def add_amounts(amounts: Iterable[Amount], oldest: Mapping[int, int] | None = None) -> None:
    """Must run inside a transaction."""
    add_sums(sums_by_place(amounts, oldest))


def add_sums(sums: Sums) -> None:
    """One upsert for all of them, in one order: two that meet wait and never block each other for good.

    Totals come last, since everybody writes them. Must run inside a transaction.
    """
    for table, buckets in (("dashboard_bucket", sums.buckets), ("dashboard_totalbucket", sums.totals)):
        execute_rows(_ADD.replace("{table}", table), [place + sum_ for place, sum_ in sorted(buckets.items())])


# SQLite and PostgreSQL both speak this; reading first what is there took half the time of a recording.
_ADD = """
INSERT INTO {table} (series_id, resolution, start_at, value, num_samples) {rows}
ON CONFLICT (series_id, resolution, start_at) DO UPDATE SET
value = {table}.value + excluded.value, num_samples = {table}.num_samples + excluded.num_samples
"""
