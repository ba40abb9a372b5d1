"""Adds amounts to time buckets at every resolution. Knows nothing about counters, engines or sources.

The caller holds the one lock under which these series are written (a source's row), inside one transaction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


def add_amounts(amounts: Iterable[Amount], oldest: Mapping[int, int] | None = None) -> None:
    """One read and one upsert for all of them. Must run inside a transaction.

    `oldest`: resolution → the first start that is still kept; what is older is left out of that resolution only.
    """
    sums = _by_place(amounts)
    if oldest:
        sums = {place: sum_ for place, sum_ in sums.items() if place[2] >= oldest[place[1]]}
    if not sums:
        return
    present = _present(sums.keys())
    rows = [
        Bucket(
            series_id=place[0],
            resolution=place[1],
            start_at=place[2],
            value=value + present.get(place, (0, 0))[0],
            num_samples=num_samples + present.get(place, (0, 0))[1],
        )
        for place, (value, num_samples) in sorted(sums.items())
    ]
    Bucket.objects.bulk_create(
        rows,
        batch_size=_BATCH,
        update_conflicts=True,
        update_fields=["value", "num_samples"],
        unique_fields=["series", "resolution", "start_at"],
    )


def _by_place(amounts: Iterable[Amount]) -> Mapping[Place, tuple[int, int]]:
    sums: dict[Place, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for amount in amounts:
        for resolution in Bucket.Resolution.values:
            place = (amount.series_id, resolution, amount.at - amount.at % resolution)
            value, num_samples = sums[place]
            sums[place] = (value + amount.value, num_samples + amount.num_samples)
    return sums


def _present(places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """What these buckets hold already: one query a resolution, each a few index look-ups."""
    by_resolution: dict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for series_id, resolution, start_at in places:
        series_ids, starts = by_resolution[resolution]
        series_ids.add(series_id)
        starts.add(start_at)
    found: dict[Place, tuple[int, int]] = {}
    for resolution, (series_ids, starts) in by_resolution.items():
        rows = Bucket.objects.filter(resolution=resolution, series_id__in=series_ids, start_at__in=starts)
        for series_id, start_at, value, num_samples in rows.values_list(
            "series_id", "start_at", "value", "num_samples"
        ):
            found[series_id, resolution, start_at] = (value, num_samples)
    return found
