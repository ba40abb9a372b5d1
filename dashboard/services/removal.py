"""Removes a source with all that it brought, and takes that away from the totals. Not within one transaction."""

from datetime import UTC, datetime

from django.db import transaction

from dashboard.models import Chunk, Head, Series, Source, TotalSeries
from dashboard.services.chunks import take_away

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def remove_source(source: Source) -> None:
    """Series by series, so that no writer waits for long; what is left can be removed again.

    Not to be called within a transaction. Looks and imports that are under way find their claims gone.
    """
    Source.objects.filter(pk=source.pk).update(is_enabled=False, due_at=_LONG_AGO)
    source.backfills.all().delete()
    for series_id, total_id in source.series.values_list("pk", "total_id"):
        with transaction.atomic():
            Source.objects.select_for_update().filter(pk=source.pk).first()
            if total_id is not None:
                take_away(series_id, total_id)
            remove_series([series_id])
    source.delete()
    TotalSeries.objects.filter(series=None).delete()


def remove_series(series_ids: list[int]) -> None:
    """With their buckets. Must run inside a transaction."""
    for rows in (Head, Chunk):
        rows.objects.filter(series__in=series_ids).delete()
    Series.objects.filter(pk__in=series_ids).delete()
