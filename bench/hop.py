"""What the way web → Celery → engine → stream adds to the engine's own time to first token, on an idle machine.

Paired: the engine says for each request when its first token was there, from its submission on; the client measures
from sending to the first text. The difference is HTTP, validation, key look-up, Celery, Valkey and the way back.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench.result import Result, compare
from tests.e2e.stack import Stack

BAR_SECONDS = 0.008
NUM_WARM_UP = 20
NUM_REQUESTS = 150


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        stack = Stack(Path(folder))
        try:
            stack.start()
            pairs = _measure(stack)
        finally:
            stack.stop()
    added = sorted(seen - own for seen, own in pairs[NUM_WARM_UP:])
    yield compare(
        "hop: added to TTFT, p50",
        ours=1000 * statistics.median(added),
        reference=1000 * BAR_SECONDS,
        reference_name="the most it may add",
        unit="ms",
        bar=1.0,
        better="lower",
    )
    yield compare(
        "hop: TTFT through the API, p50",
        ours=1000 * statistics.median(seen for seen, _ in pairs[NUM_WARM_UP:]),
        reference=1000 * statistics.median(own for _, own in pairs[NUM_WARM_UP:]),
        reference_name="the engine's own TTFT",
        unit="ms",
        bar=1.5,
        better="lower",
    )


def _measure(stack: Stack) -> list[tuple[float, float]]:
    """(seconds until the client had the first text, the engine's own) for each request, one after the other."""
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    with httpx.Client(base_url=stack.base_url, headers=headers, timeout=60) as client:
        model = client.get("/v1/models").json()["data"][0]["id"]
        return [_ask(client, model) for _ in range(NUM_WARM_UP + NUM_REQUESTS)]


def _ask(client: httpx.Client, model: str) -> tuple[float, float]:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 2,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    first_at, own = 0.0, 0.0
    sent_at = time.perf_counter()
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        for line in answer.iter_lines():
            chunk = json.loads(line[6:]) if line.startswith("data: {") else {}
            if not first_at and chunk.get("choices") and chunk["choices"][0]["delta"].get("content"):
                first_at = time.perf_counter()
            if chunk.get("usage"):
                own = chunk["usage"]["tierscope"]["ttft_seconds"]
    return first_at - sent_at, own
