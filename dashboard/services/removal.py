"""Removes sources with all that they brought, and takes that away from the totals. Not within one transaction.

Years of an engine with a hundred series take a second or two, a fleet minutes: what was asked for is written down,
begun at once and gone on with by the worker.
"""

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from django.db import transaction

from dashboard.chunks import ChunkError
from dashboard.models import Chunk, Head, Series, Source
from dashboard.services.chunks import lock, take_away
from dashboard.services.totals import remove_empty

_log = logging.getLogger(__name__)

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
Clock = Callable[[], datetime]


def remove_sources(sources: Collection[Source], *, clock: Clock, seconds: float) -> None:
    """For so long at most; what is left by then is gone on with by `go_on`. Not to be called within a transaction."""
    asked = Source.objects.filter(pk__in=[source.pk for source in sources])
    asked.update(is_enabled=False, due_at=_LONG_AGO, removed_at=clock(), last_error="")
    go_on(clock=clock, seconds=seconds)


def go_on(*, clock: Clock, seconds: float) -> int:
    """Goes on with what was asked for, the oldest first, for so long at most; how many sources are gone."""
    ends_at = clock() + timedelta(seconds=seconds)
    num_gone = 0
    for source in Source.objects.exclude(removed_at=None).order_by("removed_at", "pk"):
        if clock() >= ends_at:
            break
        num_gone += _remove(source, clock, ends_at)
    return num_gone


def _remove(source: Source, clock: Clock, ends_at: datetime) -> bool:
    """Series by series, so that no writer waits for long. False where some are left when the time is over, or cannot be
    read: totals would keep what they say.

    Looks and imports that are under way find their claims gone.
    """
    source.backfills.all().delete()
    problem = ""
    for series_id, total_id in source.series.values_list("pk", "total_id"):
        if clock() >= ends_at:
            return False
        try:
            _remove_one(source, series_id, total_id)
        except ChunkError as error:
            problem = str(error)
    if problem:
        _log.error("%s cannot be removed. %s", source.name, problem)
        Source.objects.filter(pk=source.pk).update(last_error=problem)
        return False
    source.delete()
    remove_empty()
    return True


@transaction.atomic
def _remove_one(source: Source, series_id: int, total_id: int | None) -> None:
    Source.objects.select_for_update().filter(pk=source.pk).first()
    if total_id is not None:
        take_away(series_id, total_id)
    remove_series([series_id])


def remove_series(series_ids: list[int]) -> None:
    """With their buckets. Must run inside a transaction. Whoever packs them meanwhile is waited for."""
    lock(Series, series_ids)
    for rows in (Head, Chunk):
        rows.objects.filter(series__in=series_ids).delete()
    Series.objects.filter(pk__in=series_ids).delete()
