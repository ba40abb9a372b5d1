"""The sample traffic as a Celery task: one run at a time, its progress in Valkey, by itself at the first start only.

Knows nothing about what is said (sample_plan.py) or how it is sent (sample_sender.py).
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import redis
from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

from dashboard import valkey
from dashboard.models import RequestLog, Series
from dashboard.sample_plan import plan
from dashboard.sample_sender import Sender, SendError
from dashboard.selectors.period import MAX_SECONDS, between
from dashboard.selectors.store import counters_of, totals_of

_KEPT_SECONDS = 600
# Longer than any step of a run: a worker that was killed blocks the next run no longer than this.
_LOCK_SECONDS = 150
_MODEL_SECONDS = 300

_stopping = threading.Event()


def start() -> None:
    """Queues one run; does nothing while one runs. Raises ValueError with a sentence where it cannot."""
    if not api_key_file().exists():
        raise ValueError(f"Sample traffic needs the key in {api_key_file()}, which is gone.")
    try:
        if valkey.client().set(valkey.SAMPLE_TRAFFIC_LOCK, "1", nx=True, ex=_LOCK_SECONDS):
            _report(0, len(plan()), "waiting for a worker")
            send_sample_traffic.apply_async(queue="default", expires=_LOCK_SECONDS)
    except redis.RedisError as error:
        raise ValueError(f"Sample traffic needs Valkey, which does not answer ({type(error).__name__}).") from None


def progress() -> dict[str, Any] | None:
    """{"is_running", "sent", "total", "message"} of the newest run; None where nothing is known."""
    try:
        text, lock = valkey.client().mget(valkey.SAMPLE_TRAFFIC_KEY, valkey.SAMPLE_TRAFFIC_LOCK)
    except redis.RedisError:
        return None
    return {**json.loads(text), "is_running": lock is not None} if text else None


@shared_task(name="dashboard.tasks.send_sample_traffic")
def send_sample_traffic() -> str:
    """Sends one run; how it ended."""
    turns = plan(seed=valkey.client().incr(valkey.SAMPLE_TRAFFIC_RUNS))
    sent = 0

    def on_sent(num_sent: int) -> None:
        nonlocal sent
        sent = num_sent
        _report(sent, len(turns), f"{sent} of {len(turns)} requests sent")

    try:
        with api_client() as client:
            sender = Sender(client, is_stopping=_stopping.is_set)
            model = sender.wait_for_model(_MODEL_SECONDS, lambda: _report(0, len(turns), "waiting for the model"))
            sender.send(turns, model, on_sent)
        message = f"done, {sent} requests sent"
    except SendError as error:
        message = f"stopped after {sent} of {len(turns)} requests: {error}"
    finally:
        valkey.client().delete(valkey.SAMPLE_TRAFFIC_LOCK)
    _write(sent, len(turns), message)
    return message


def is_first_start() -> bool:
    """No prompt was ever asked or recorded, and nobody turned the sample traffic off.

    An engine that idles has series, too: a first start that was stopped early does not count.
    """
    return settings.SAMPLE_TRAFFIC and not RequestLog.objects.exists() and not _has_prompt_tokens()


def _has_prompt_tokens() -> bool:
    now = time.time()
    series = counters_of([Series.Metric.PROMPT_TOKENS], engine=None, model_name=None)
    return bool(totals_of(series, between(now - MAX_SECONDS, now, now=now)))


@worker_ready.connect
def start_with_an_empty_database(sender: Any, **kwargs: Any) -> None:
    """Only the worker that consumes the default queue does: engine workers come and go.

    Tried again once a run is over for certain that a worker had when it was killed.
    """
    if "default" in sender.app.amqp.queues.consume_from and is_first_start():
        start()
        start_if_nothing_was_asked.apply_async(queue="default", countdown=_LOCK_SECONDS)


@shared_task(name="dashboard.tasks.start_if_nothing_was_asked")
def start_if_nothing_was_asked() -> None:
    if is_first_start():
        start()


@worker_shutting_down.connect
def end_early(**kwargs: Any) -> None:
    """A stop does not wait for the rest of a run, nor the next start for its lock."""
    _stopping.set()


def api_key_file() -> Path:
    return Path(settings.TIERSCOPE_HOME / "api-key")


def api_client() -> httpx.Client:
    """With the default API key. Raises OSError where that is gone."""
    key = api_key_file().read_text().strip()
    return httpx.Client(base_url=settings.API_URL, headers={"Authorization": f"Bearer {key}"})


def _report(sent: int, total: int, message: str) -> None:
    """Progress of a run that goes on: keeps its lock alive."""
    _write(sent, total, message)
    valkey.client().expire(valkey.SAMPLE_TRAFFIC_LOCK, _LOCK_SECONDS)


def _write(sent: int, total: int, message: str) -> None:
    state = {"sent": sent, "total": total, "message": message}
    valkey.client().set(valkey.SAMPLE_TRAFFIC_KEY, json.dumps(state), ex=_KEPT_SECONDS)
