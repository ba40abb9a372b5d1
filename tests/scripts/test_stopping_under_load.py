"""SIGTERM to the launcher while answers stream: each client hears how it ended, each request is logged."""

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.scripts.started import Start
from tests.stored import rows_of

ENGINE = (
    "python -m celery --app tests.e2e.scripted_engine worker --pool threads --queues engine.local "
    "--hostname engine-local@%h --concurrency 32 --loglevel INFO --without-gossip --without-mingle"
)
PROGRAMS = f"""
valkey: python manage.py launch valkey
worker: python manage.py launch worker
engine: {ENGINE}
web: python manage.py launch web
"""
SECONDS = 90


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    start = Start(tmp_path, PROGRAMS)
    yield start
    for process in start.processes():
        process.kill()
    start.process.wait(10)


def is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


class Clients:
    """Each asks again and again until it is refused; what it was told of each request, by the request's id."""

    def __init__(self, start: Start) -> None:
        key = (start.home / "api-key").read_text().strip()
        self.client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{start.port}/v1", api_key=key, max_retries=0, timeout=60
        )
        self.ended: dict[str, str] = {}
        self.refusals: list[str] = []

    def stream(self, **script: Any) -> None:
        while not self.refusals:
            id_ = ""
            try:
                for chunk in self.client.chat.completions.create(**body(**script), stream=True):
                    id_ = chunk.id
                    self.ended[id_] = "open"
                    if chunk.choices and chunk.choices[0].finish_reason:
                        self.ended[id_] = chunk.choices[0].finish_reason
            except openai.APIError as error:
                self._refused(id_, error)

    def whole(self, **script: Any) -> None:
        while not self.refusals:
            try:
                answer = self.client.chat.completions.create(**body(**script))
                self.ended[answer.id] = answer.choices[0].finish_reason
            except openai.APIError as error:
                self._refused("", error)

    def _refused(self, id_: str, error: openai.APIError) -> None:
        self.refusals.append(f"{type(error).__name__}: {error}")
        if id_:
            self.ended[id_] = "told"


def body(**script: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": json.dumps(script)}]}


@pytest.mark.slow
def test_a_stop_under_load_cuts_nobody_off_and_loses_no_row(started: Start) -> None:
    until = time.monotonic() + SECONDS
    http = httpx.Client(base_url=f"http://127.0.0.1:{started.port}")
    while not is_ready(http):
        assert time.monotonic() < until, started.console.read_text()[-4000:]
        time.sleep(0.2)
    clients = Clients(started)
    with ThreadPoolExecutor(12) as pool:
        running = [pool.submit(clients.stream, words=5000, pause=0.02) for _ in range(4)]
        running += [pool.submit(clients.stream, words=20, pause=0.02) for _ in range(3)]
        running += [pool.submit(clients.whole, words=5000, pause=0.02) for _ in range(2)]
        running += [pool.submit(clients.whole, words=20, pause=0.02) for _ in range(3)]
        while len(clients.ended) < 40:
            time.sleep(0.1)
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(SECONDS) == 0
        for each in running:
            each.result(10)

    assert started.processes() == []
    assert set(clients.ended.values()) == {"length", "told"}
    # A connection that came after the end of listening is refused by the system, and one at that moment closed unread.
    told = [each for each in clients.refusals if "APIConnectionError" not in each]
    assert len(told) >= 6
    assert all("is stopping; send the request again" in each for each in told)
    rows = dict(query(started, "SELECT request_id, finish_reason FROM dashboard_requestlog"))
    expected = {id_: "abort" if reason == "told" else reason for id_, reason in clients.ended.items()}
    assert expected.items() <= rows.items()
    assert sum(reason == "abort" for reason in rows.values()) == 6
    ((generated,),) = query(started, "SELECT SUM(generated_tokens) FROM dashboard_requestlog")
    recorded = rows_of(partial(query, started), metric="generated_tokens", resolution=86400)
    assert sum(row.value for row in recorded) == generated


def query(start: Start, text: str) -> list[Any]:
    with sqlite3.connect(start.home / "tierscope.sqlite3") as connection:
        return connection.execute(text).fetchall()
