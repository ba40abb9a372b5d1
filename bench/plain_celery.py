"""The peer of bench/hop.py: a Celery application with one task that writes one token into a stream, and its worker."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import redis
from celery import Celery

from tests.e2e.stack import ROOT

_SOCKET = "TIERSCOPE_BENCH_SOCKET"
_QUEUE = "plain"

app = Celery("plain", broker=f"redis+socket://{os.environ.get(_SOCKET, '')}")
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True


@cache
def _client() -> redis.Redis:
    return redis.Redis(unix_socket_path=os.environ[_SOCKET], decode_responses=True, socket_timeout=60)


@app.task(name="bench.first_token")
def first_token(run_id: str) -> None:
    _client().xadd(run_id, {"event": "token"})


@contextmanager
def plain_worker(socket: Path) -> Iterator[None]:
    """A worker with a pool of threads, as the engine's is, on a Valkey that runs already."""
    os.environ[_SOCKET] = str(socket)
    app.conf.update(broker_url=f"redis+socket://{socket}")  # of this process; the worker reads its environment
    arguments = [*("--pool", "threads", "--concurrency", "128", "--queues", _QUEUE, "--loglevel", "WARNING")]
    argv = [sys.executable, "-m", "celery", "--quiet", "--app", __name__, "worker", *arguments]
    worker = subprocess.Popen([*argv, "--without-gossip", "--without-mingle"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(30)


def seconds_to_first_token() -> float:
    """From sending the task to having read what it wrote."""
    run_id = f"plain:{uuid.uuid4()}"
    sent_at = time.perf_counter()
    app.send_task("bench.first_token", args=[run_id], queue=_QUEUE)
    answer: Any = _client().xread({run_id: "0"}, block=30_000)
    assert answer, "the plain worker does not answer"
    seen_at = time.perf_counter()
    _client().unlink(run_id)
    return seen_at - sent_at
