"""Keeps what all engines together counted beside what each one did. Knows no readings.

A series that counts, and is no replay's, belongs to a total; what is added to it is added there, and what is removed
with a source is taken away again.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from django.db import connection, transaction

from dashboard.models import Bucket, Series, Source, TotalBucket, TotalSeries
from dashboard.services.rows import fetch_of

_BATCH = 200
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
Names = tuple[str, str, str, str]  # metric, model_name, cache_tier, detail


def totals_of(series_ids: Collection[int]) -> dict[int, int]:
    """Series → its total; those without one are left out."""
    sql = "SELECT id, total_id FROM dashboard_series WHERE id IN ({ids}) AND total_id IS NOT NULL"
    return dict(fetch_of(sql, series_ids))


def assign(series: Iterable[Series]) -> list[Series]:
    """New series, not stored yet, with their totals; these are made where there are none."""
    new = list(series)
    replays = set(
        Source.objects.filter(pk__in={one.source_id for one in new}, kind=Source.Kind.REPLAY).values_list(
            "pk", flat=True
        )
    )
    counting = [one for one in new if one.metric not in Series.GAUGES and one.source_id not in replays]
    known = _known(counting)
    if missing := {_names(one) for one in counting} - known.keys():
        rows = (TotalSeries(metric=m, model_name=n, cache_tier=t, detail=d) for m, n, t, d in sorted(missing))
        TotalSeries.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)
        known = _known(counting)
    for one in counting:
        one.total_id = known[_names(one)]
    return new


def remove_source(source: Source) -> None:
    """With all its series, one after the other, so that no writer waits for long; what is left can be removed again.

    Not to be called within a transaction. Looks and imports that are under way find their claims gone.
    """
    Source.objects.filter(pk=source.pk).update(is_enabled=False, due_at=_LONG_AGO)
    source.backfills.all().delete()
    for series_id, total_id in source.series.values_list("pk", "total_id"):
        with transaction.atomic():
            Source.objects.select_for_update().filter(pk=source.pk).first()
            if total_id is not None:
                _take_away(series_id, total_id)
            Bucket.objects.filter(series=series_id).delete()
            Series.objects.filter(pk=series_id).delete()
    source.delete()
    TotalSeries.objects.filter(series=None).delete()


def _take_away(series_id: int, total_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SUBTRACT, [total_id, series_id])
    TotalBucket.objects.filter(series=total_id, num_samples=0).delete()


def _known(series: Collection[Series]) -> dict[Names, int]:
    rows = TotalSeries.objects.filter(
        metric__in={one.metric for one in series}, model_name__in={one.model_name for one in series}
    )
    return {
        (m, n, t, d): pk for pk, m, n, t, d in rows.values_list("pk", "metric", "model_name", "cache_tier", "detail")
    }


def _names(series: Series) -> Names:
    return series.metric, series.model_name, series.cache_tier, series.detail


_SUBTRACT = """
UPDATE dashboard_totalbucket SET
value = dashboard_totalbucket.value - gone.value, num_samples = dashboard_totalbucket.num_samples - gone.num_samples
FROM dashboard_bucket AS gone
WHERE dashboard_totalbucket.series_id = %s AND gone.series_id = %s
AND gone.resolution = dashboard_totalbucket.resolution AND gone.start_at = dashboard_totalbucket.start_at
"""
