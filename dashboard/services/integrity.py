"""Verifies the store: every resolution says the same about every stretch of time that it keeps whole, and totals say
what the engines' series come to.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

from django.db.models import F, Min, Sum

from dashboard.models import Bucket, TotalBucket
from dashboard.selectors.kept import oldest_starts, retention

_SHOWN = 5
_NEVER = 2**62


def check(*, now: datetime) -> None:
    """Raises AssertionError with a sentence where a coarse bucket differs from the finer ones that make it up."""
    kept = oldest_starts(retention(), now.timestamp())
    for fine, coarse in pairwise(Bucket.Resolution.values):
        wrong = list(_differences(fine, coarse, max(kept[fine], _first_day(fine))))
        assert not wrong, f"{len(wrong)} buckets of {coarse} s differ from their {fine} s buckets: {wrong[:_SHOWN]}"
    wrong_totals = _sums(Bucket, "series__total") ^ _sums(TotalBucket, "series")
    assert not wrong_totals, f"Totals are not what engines' buckets come to: {sorted(wrong_totals)[:_SHOWN]}"


def _sums(buckets: type[Bucket] | type[TotalBucket], total: str) -> set[tuple[int, ...]]:
    rows = buckets._default_manager.exclude(**{total: None}).values_list(total, "resolution", "start_at")
    return set(rows.annotate(Sum("value"), Sum("num_samples")))


def _differences(fine: int, coarse: int, oldest: int) -> Iterable[tuple[int, int]]:
    """(series_id, start_at) of coarse buckets whose amount or number of readings is not their finer buckets' sum."""
    slots = Bucket.objects.filter(resolution=fine, start_at__gte=oldest).annotate(
        slot=F("start_at") - F("start_at") % coarse
    )
    totals = slots.values("series_id", "slot").annotate(Sum("value"), Sum("num_samples"))
    fine_sums = {(row["series_id"], row["slot"]): (row["value__sum"], row["num_samples__sum"]) for row in totals}
    rows = Bucket.objects.filter(resolution=coarse, start_at__gte=oldest)
    coarse_sums = {(row.series_id, row.start_at): (row.value, row.num_samples) for row in rows}
    return (place for place in fine_sums.keys() | coarse_sums.keys() if fine_sums.get(place) != coarse_sums.get(place))


def _first_day(resolution: int) -> int:
    """Expiry cuts at whole days, and somebody may have it keep more than it kept before. Without buckets: never."""
    first = Bucket.objects.filter(resolution=resolution).aggregate(Min("start_at"))["start_at__min"]
    return _NEVER if first is None else int(first) // 86400 * 86400
