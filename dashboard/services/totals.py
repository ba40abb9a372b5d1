"""Keeps what all engines together counted beside what each one did. Knows no readings.

A series that counts, and is no replay's, belongs to a total; what is added to it is added there.
"""

from collections.abc import Collection, Iterable

from dashboard.models import Series, Source, TotalSeries
from dashboard.services.rows import fetch_of

_BATCH = 200
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


def _known(series: Collection[Series]) -> dict[Names, int]:
    rows = TotalSeries.objects.filter(
        metric__in={one.metric for one in series}, model_name__in={one.model_name for one in series}
    )
    return {
        (m, n, t, d): pk for pk, m, n, t, d in rows.values_list("pk", "metric", "model_name", "cache_tier", "detail")
    }


def _names(series: Series) -> Names:
    return series.metric, series.model_name, series.cache_tier, series.detail
