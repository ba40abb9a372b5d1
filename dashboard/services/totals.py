"""Which total a series belongs to: every one but a replay's. Knows no readings.

What is added to a counter is added to its total as well; of gauges the total has their means (services/chunks.py).
"""

from collections.abc import Collection, Iterable

from django.db import transaction

from dashboard.batches import batched
from dashboard.models import Series, Source, TotalSeries
from dashboard.services.rows import fetch_of

_BATCH = 200
Names = tuple[str, str, str, str]  # metric, model_name, cache_tier, detail


def totals_of(series_ids: Collection[int]) -> dict[int, int]:
    """Of counters: series → its total; those without one are left out."""
    return _totals_of(series_ids, "NOT IN")


def gauge_totals_of(series_ids: Collection[int]) -> dict[int, int]:
    """The same of gauges."""
    return _totals_of(series_ids, "IN")


def _totals_of(series_ids: Collection[int], is_gauge: str) -> dict[int, int]:
    gauges = ", ".join(f"'{metric.value}'" for metric in sorted(Series.GAUGES))
    return dict(fetch_of(_TOTALS.format(is_gauge=is_gauge, gauges=gauges, ids="{ids}"), series_ids))


_TOTALS = """
SELECT id, total_id FROM dashboard_series WHERE id IN ({ids}) AND total_id IS NOT NULL AND metric {is_gauge} ({gauges})
"""


def assign(series: Iterable[Series]) -> list[Series]:
    """New series, not stored yet, with their totals; these are made where there are none.

    Must run inside the transaction that stores them: until then nobody removes these totals as those of no series.
    """
    new = list(series)
    replays = set(
        Source.objects.filter(pk__in={one.source_id for one in new}, kind=Source.Kind.REPLAY).values_list(
            "pk", flat=True
        )
    )
    told = [one for one in new if one.source_id not in replays]
    names = {_names(one) for one in told}
    while missing := names - (known := _held(told)).keys():
        rows = (TotalSeries(metric=m, model_name=n, cache_tier=t, detail=d) for m, n, t, d in sorted(missing))
        TotalSeries.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)
    for one in told:
        one.total_id = known[_names(one)]
    return new


def remove_empty() -> None:
    """Totals of no series. Who is about to store one of such a total is waited for, and then it stays."""
    ids = list(TotalSeries.objects.filter(series=None).order_by("pk").values_list("pk", flat=True))
    for together in batched(ids, _BATCH):
        with transaction.atomic():
            held = list(TotalSeries.objects.select_for_update().filter(pk__in=together).order_by("pk"))
            TotalSeries.objects.filter(pk__in=[total.pk for total in held], series=None).delete()


def _held(series: Collection[Series]) -> dict[Names, int]:
    """Totals that there are, held until the transaction ends."""
    rows = (
        TotalSeries.objects.select_for_update(no_key=True)
        .order_by("pk")
        .filter(metric__in={one.metric for one in series}, model_name__in={one.model_name for one in series})
    )
    return {
        (m, n, t, d): pk for pk, m, n, t, d in rows.values_list("pk", "metric", "model_name", "cache_tier", "detail")
    }


def _names(series: Series) -> Names:
    return series.metric, series.model_name, series.cache_tier, series.detail
