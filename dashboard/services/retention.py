"""Expires what is older than it is kept: buckets by resolution, the request log, states of runs that ended.

Nothing is downsampled here: every coarser resolution was written with the finer one, so an expired bucket's amount is
still in the coarser ones. A chunk goes once its last bucket is too old. Deletes in small batches, each its own
transaction, so that no writer waits for long.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from dashboard.batches import batched
from dashboard.chunks import span_seconds
from dashboard.gauge_steps import STEPS
from dashboard.models import Chunk, EngineRun, RequestLog, Retention, Series, TotalChunk, TotalSeries
from dashboard.selectors.kept import oldest_starts, retention

BATCH_ROWS = 5_000
_TOGETHER = 200  # series whose old chunks go at once
# Runs that ended are published for an hour (valkey.FINAL_TTL_SECONDS): a week later nothing of them can come any more.
_RUN_LIFE = timedelta(days=7)


@dataclass(frozen=True)
class Expired:
    """How many rows went."""

    chunks: int
    requests: int
    runs: int


def expire(*, now: datetime) -> Expired:
    """Deletes everything that is older than the retention says. Restartable: a second run goes on."""
    kept = retention()
    return Expired(
        chunks=_expire_chunks(oldest_starts(kept, now.timestamp())),
        requests=_expire_requests(kept, now),
        runs=_expire_runs(now),
    )


def _expire_chunks(oldest: Mapping[int, int]) -> int:
    """Those of which no bucket is kept. Series by series: the key finds its old chunks, no second index is kept."""
    num_deleted = 0
    for counted, chunks in ((Series, Chunk), (TotalSeries, TotalChunk)):
        for ids in batched(list(counted._default_manager.values_list("pk", flat=True)), _TOGETHER):
            for resolution, start_at in oldest.items():
                steps = {resolution, *STEPS.get(resolution, ())}
                old = chunks._default_manager.filter(series__in=ids, resolution__in=steps)
                num_deleted += old.filter(start_at__lte=start_at - span_seconds(resolution)).delete()[0]
    return num_deleted


def _expire_requests(kept: Retention, now: datetime) -> int:
    num_deleted = _delete(RequestLog.objects.filter(finished_at__lt=now - timedelta(days=kept.requests_days)))
    newest_first = RequestLog.objects.order_by("-finished_at", "-pk")
    surplus = newest_first[kept.requests_rows : kept.requests_rows + BATCH_ROWS]
    while ids := list(surplus.values_list("pk", flat=True)):
        num_deleted += RequestLog.objects.filter(pk__in=ids).delete()[0]
    return num_deleted


def _expire_runs(now: datetime) -> int:
    """Runs that tell their boot and are long gone. A watched engine's state is what its next increase is measured from.

    Gone means that their source was read since: after a pause of the recorder itself a silent run may still be running,
    and would count from 0 again if it were forgotten.
    """
    gone = Q(read_at__lt=now - _RUN_LIFE) & Q(read_at__lt=F("source__last_ok_at") - _RUN_LIFE)
    old = EngineRun.objects.exclude(boot_id="").filter(gone)
    return sum(run.delete()[1].get("dashboard.EngineRun", 0) for run in old)


def _delete(rows: QuerySet[RequestLog]) -> int:
    num_deleted = 0
    while ids := list(rows.order_by().values_list("pk", flat=True)[:BATCH_ROWS]):
        num_deleted += rows.model._base_manager.filter(pk__in=ids).delete()[0]
    return num_deleted
