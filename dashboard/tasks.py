"""The `default` queue's recording tasks: thin, keyword-only, ids only. What they do is in dashboard/services.

The engine's own tasks are in engine_tasks.py. Every task may run twice or be lost: sources are claimed, expiry resumes.
"""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown
from django.utils import timezone

from dashboard import trace_folder, valkey
from dashboard.batches import evenly
from dashboard.garbage import collect_rarely
from dashboard.services import (
    alerts,
    backfill,
    chunks,
    discovery,
    logins,
    policy_search,
    recording,
    removal,
    replaying,
    replays,
    retention,
    sources,
    webhooks,
)

_importing = threading.Lock()
_replaying = threading.Lock()
_searching = threading.Lock()
_removing = threading.Lock()
_settling = threading.Lock()
_REMOVAL_SECONDS = 8

Answer = TypeVar("Answer")


def _alone(lock: threading.Lock, otherwise: Answer) -> Callable[[Callable[[], Answer]], Callable[[], Answer]]:
    """In one of a worker's threads at a time; the others answer `otherwise` at once."""

    def wrapped(task: Callable[[], Answer]) -> Callable[[], Answer]:
        @wraps(task)
        def run() -> Answer:
            if not lock.acquire(blocking=False):
                return otherwise
            try:
                return task()
            finally:
                lock.release()

        return run

    return wrapped


@shared_task(name="dashboard.tasks.record_due", queue="default", expires=5)
def record_due() -> int:
    """Starts recordings of every source whose time has come; of how many."""
    embedded = sources.ensure_embedded()
    due = recording.due_source_ids(timezone.now())
    if embedded.pk in due:
        record_source.delay(source_id=embedded.pk)
    watched = [source_id for source_id in due if source_id != embedded.pk]
    for together in evenly(watched, recording.MAX_TOGETHER):
        record_sources.delay(source_ids=together)
    return len(due)


@shared_task(name="dashboard.tasks.discover_due", queue="default", expires=30)
def discover_due() -> int:
    """Reads every list of targets whose time has come; how many were read."""
    return discovery.refresh_due(timezone.now())


@shared_task(name="dashboard.tasks.backfill_due", queue="default", expires=10)
@_alone(_importing, otherwise=0)
def backfill_due() -> int:
    """Goes on with imports of history for some seconds; how many pieces were imported.

    One of a worker's threads at a time: old history may take a minute to be answered.
    """
    ends_at = timezone.now() + timedelta(seconds=backfill.TURN_SECONDS)
    num_pieces = 0
    for pk in backfill.unfinished_ids(timezone.now()):
        while timezone.now() < ends_at and backfill.advance(pk, now=timezone.now()):
            num_pieces += 1
    return num_pieces


@shared_task(name="dashboard.tasks.evaluate_alerts", queue="default", expires=30)
def evaluate_alerts() -> int:
    """Looks at every alert rule; how many alerts began or ended. Webhooks hear of it at once."""
    num_changed = len(alerts.evaluate(timezone.now()))
    if num_changed:
        tell_webhooks.delay()
    return num_changed


@shared_task(name="dashboard.tasks.tell_webhooks", queue="default", expires=10)
def tell_webhooks() -> int:
    """Tells webhooks what is due to be told; how many notices were."""
    return webhooks.tell_due(timezone.now)


@shared_task(name="dashboard.tasks.replay_due", queue="default", expires=10)
@_alone(_replaying, otherwise=False)
def replay_due() -> bool:
    """Goes on with the oldest replay that nobody else is on, for some seconds; whether there was one.

    One of a worker's threads at a time: a turn may take minutes, and the others have to be there for scrapes.
    """
    replaying.let_go_of_ended()
    trace_folder.remove_old_parts((timezone.now() - timedelta(days=1)).timestamp())
    return any(replaying.take_turn(pk, clock=timezone.now) for pk in replaying.unfinished_ids(timezone.now()))


@shared_task(name="dashboard.tasks.policies_due", queue="default", expires=5)
@_alone(_searching, otherwise=False)
def policies_due() -> bool:
    """Goes on with the oldest search for policies, for some seconds in one of the threads; whether there was one."""
    ids = policy_search.unfinished_ids(timezone.now())
    return any(policy_search.take_turn(pk, clock=timezone.now) for pk in ids)


@shared_task(name="dashboard.tasks.record_source", queue="default", expires=10)
def record_source(*, source_id: int) -> bool:
    """Records one source and tells open pages; False where another worker got there first."""
    connection = valkey.client()
    is_recorded = recording.record(source_id, now=timezone.now(), connection=connection)
    if is_recorded:
        recording.publish_tick(connection, source_id)
    return is_recorded


@shared_task(name="dashboard.tasks.record_sources", queue="default", expires=10)
def record_sources(*, source_ids: list[int]) -> int:
    """Records watched sources side by side and tells open pages; how many were booked."""
    connection = valkey.client()
    booked = recording.record_many(source_ids, clock=timezone.now, connection=connection)
    for source_id in booked:
        recording.publish_tick(connection, source_id)
    return len(booked)


@worker_ready.connect
def collect_garbage_rarely(sender: Any, **kwargs: Any) -> None:
    """In the process that records; an engine's has tensors to let go of."""
    if "default" in sender.app.amqp.queues.consume_from:
        collect_rarely()


@worker_shutdown.connect
def record_once_more(sender: Any, **kwargs: Any) -> None:
    """`make run` stops engines before this worker: their last increase is booked before the night."""
    if "default" in sender.app.amqp.queues.consume_from:
        recording.record_embedded_now(now=timezone.now(), connection=valkey.client())


@shared_task(name="dashboard.tasks.settle", queue="default", expires=30)
@_alone(_settling, otherwise=0)
def settle() -> int:
    """Packs amounts that have been in the head for a while into chunks; of how many series.

    One of a worker's threads at a time: with very many series it takes longer than until the next message.
    """
    return chunks.settle(now=timezone.now())


@shared_task(name="dashboard.tasks.remove_due", queue="default", expires=10)
@_alone(_removing, otherwise=0)
def remove_due() -> int:
    """Goes on with the removal of sources for some seconds in one of the threads; how many are gone."""
    return removal.go_on(clock=timezone.now, seconds=_REMOVAL_SECONDS)


@shared_task(name="dashboard.tasks.expire", queue="default", expires=300)
def expire() -> None:
    """Deletes what is too old by the retention, sessions that are over, and what is left of removed replays."""
    retention.expire(now=timezone.now())
    logins.expire(now=timezone.now())
    alerts.expire(now=timezone.now())
    replays.remove_leftovers()
