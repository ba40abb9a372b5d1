"""How many answers a second /v1 gives when the engine costs nothing, beside plain Celery tasks.

An answer is HTTP, authentication, validation, a task, a stream of events and a row in the request log; a plain task
is a message and a result.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx

from bench.result import Result, compare
from tests.e2e.stack import Stack

NUM_WARM_UP = 20
NUM_CALLS = 300
AT_ONCE = 16


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        stack = Stack(Path(folder), engine_app="tests.e2e.scripted_engine")
        try:
            stack.start(60)
            ours, reference = _answers_a_second(stack), _tasks_a_second(stack)
        finally:
            stack.stop()
    yield compare(
        f"api: answers, {AT_ONCE} at once",
        ours=ours,
        reference=reference,
        reference_name="plain Celery tasks with results",
        unit="1/s",
        bar=0.15,
        better="higher",
    )


def _answers_a_second(stack: Stack) -> float:
    message = {"role": "user", "content": json.dumps({"words": 1})}
    body = {"model": "scripted", "messages": [message]}
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    with httpx.Client(base_url=stack.base_url, headers=headers, timeout=60) as client:

        def answer() -> None:
            client.post("/v1/chat/completions", json=body).raise_for_status()

        return _rate(answer)


def _tasks_a_second(stack: Stack) -> float:
    os.environ["TIERSCOPE_HOME"] = str(stack.home)
    os.environ["REDIS_URL"] = f"unix://{quote(str(stack.home / 'valkey.sock'))}?db=0"
    from dashboard.celery import app

    def task() -> None:
        app.send_task("tests.nothing", queue="engine.local", ignore_result=False).get(timeout=60)

    return _rate(task)


def _rate(call: Callable[[], None]) -> float:
    """Calls a second, `AT_ONCE` at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: call(), range(NUM_WARM_UP)))
        started_at = time.perf_counter()
        list(pool.map(lambda _: call(), range(NUM_CALLS)))
        return NUM_CALLS / (time.perf_counter() - started_at)
