"""Verifies the store: every resolution says the same about every stretch of time that it keeps whole."""

from collections.abc import Iterable
from itertools import pairwise

from django.db.models import F, Sum

from dashboard.models import Bucket

_SHOWN = 5


def check() -> None:
    """Raises AssertionError with a sentence where a coarse bucket differs from the finer ones that make it up."""
    for fine, coarse in pairwise(Bucket.Resolution.values):
        wrong = list(_differences(fine, coarse))
        assert not wrong, f"{len(wrong)} buckets of {coarse} s differ from their {fine} s buckets: {wrong[:_SHOWN]}"


def _differences(fine: int, coarse: int) -> Iterable[tuple[int, int]]:
    """(series_id, start_at) of coarse buckets whose amount or number of readings is not their finer buckets' sum."""
    oldest = _oldest_whole(fine)
    slots = Bucket.objects.filter(resolution=fine, start_at__gte=oldest).annotate(
        slot=F("start_at") - F("start_at") % coarse
    )
    totals = slots.values("series_id", "slot").annotate(Sum("value"), Sum("num_samples"))
    fine_sums = {(row["series_id"], row["slot"]): (row["value__sum"], row["num_samples__sum"]) for row in totals}
    rows = Bucket.objects.filter(resolution=coarse, start_at__gte=oldest)
    coarse_sums = {(row.series_id, row.start_at): (row.value, row.num_samples) for row in rows}
    return (place for place in fine_sums.keys() | coarse_sums.keys() if fine_sums.get(place) != coarse_sums.get(place))


def _oldest_whole(fine: int) -> int:
    """Expiry cuts at whole days: the first day that has finer buckets has all of them."""
    first = Bucket.objects.filter(resolution=fine).order_by("start_at").values_list("start_at", flat=True).first()
    return (first or 0) // 86400 * 86400
