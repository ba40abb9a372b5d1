"""What the way web → Celery → engine → stream adds to the engine's own time to first token, on an idle machine.

Paired: the engine says for each request when its first token was there, from its submission on; the client measures
from sending to the first text. The difference is HTTP, validation, key look-up, Celery, Valkey and the way back. A
plain Celery task between two requests goes the same way without the rest: how fast the machine is just now.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx

from bench.plain_celery import plain_worker, seconds_to_first_token
from bench.result import Result, compare
from tests.e2e.stack import Stack

BAR_SECONDS = 0.008
# The bar was set on a machine where the plain task takes 3 ms: on any other it is as many times what that takes there.
BAR_TIMES_PLAIN = 8 / 3
NUM_WARM_UP = 20
NUM_REQUESTS = 150


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        stack = Stack(Path(folder))
        try:
            stack.start()
            with plain_worker(stack.home / "valkey.sock"):
                seconds_to_first_token()  # the worker is up
                told = _measure(stack)
        finally:
            stack.stop()
    seen, own, plain = (statistics.median(column) for column in zip(*told, strict=True))
    added = statistics.median(seen - own for seen, own, _ in told)
    yield compare(
        "hop: added to TTFT, p50",
        ours=1000 * added,
        reference=1000 * BAR_SECONDS,
        reference_name="the most it may add",
        unit="ms",
        bar=1.0,
        better="lower",
    )
    yield compare(
        "hop: added to TTFT, against plain Celery, p50",
        ours=1000 * added,
        reference=1000 * plain,
        reference_name="a plain task's first token",
        unit="ms",
        bar=BAR_TIMES_PLAIN,
        better="lower",
    )
    yield compare(
        "hop: TTFT through the API, p50",
        ours=1000 * seen,
        reference=1000 * own,
        reference_name="the engine's own TTFT",
        unit="ms",
        bar=1.5,
        better="lower",
    )


def _measure(stack: Stack) -> list[tuple[float, float, float]]:
    """Seconds until the client had the first text, the engine's own, a plain task's, one after the other, by turns."""
    connection = HTTPConnection("127.0.0.1", stack.port, timeout=60)
    headers = {"Authorization": f"Bearer {stack.api_key}", "Content-Type": "application/json"}
    model = httpx.get(f"{stack.base_url}/v1/models", headers=headers, timeout=10).json()["data"][0]["id"]
    with closing(connection):
        told = [
            (*_ask(connection, headers, model), seconds_to_first_token()) for _ in range(NUM_WARM_UP + NUM_REQUESTS)
        ]
        return told[NUM_WARM_UP:]


def _ask(connection: HTTPConnection, headers: dict[str, str], model: str) -> tuple[float, float]:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 2,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    first_at, own, text = 0.0, 0.0, json.dumps(body)
    sent_at = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", text, headers)
    with connection.getresponse() as answer:
        for line in answer:
            chunk = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            if not first_at and chunk.get("choices") and chunk["choices"][0]["delta"].get("content"):
                first_at = time.perf_counter()
            if chunk.get("usage"):
                own = chunk["usage"]["tierscope"]["ttft_seconds"]
    return first_at - sent_at, own
