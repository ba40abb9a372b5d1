"""What the launcher says while it waits, from what the processes publish in a real Valkey."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from threading import Thread
from typing import ClassVar

import pytest

from scripts.readiness import Probe, connect


class Health(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it so)
        """Keeps the console clean."""


@pytest.fixture
def web_url() -> Iterator[str]:
    server = TCPServer(("127.0.0.1", 0), Health)  # HTTPServer would ask the name server who 127.0.0.1 is
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def probe(valkey: str, web_url: str) -> Probe:
    return Probe(web_url, connect(valkey), "engine", "traffic", "lock")


def publish(probe: Probe, **state: object) -> None:
    probe.valkey.set("engine", json.dumps(state))


def test_it_is_ready_when_the_engine_and_the_health_page_say_so(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not probe.is_ready()
    publish(probe, status="loading")
    assert not probe.is_ready()
    publish(probe, status="ready")
    assert probe.is_ready()
    monkeypatch.setattr(Health, "status", 503)
    assert not probe.is_ready()


def test_the_loading_of_the_model_is_told(probe: Probe) -> None:
    assert probe.engine_progress() == ""
    publish(probe, status="loading", progress=["dequantising", 0.4])
    assert probe.engine_progress() == "loading the model: dequantising (40%)"
    publish(probe, status="ready", progress=["ready", 1.0])
    assert probe.engine_progress() == ""


def test_why_an_engine_cannot_start_is_told(probe: Probe) -> None:
    publish(probe, status="failed", progress=["there is no file x.gguf", 0.0])
    assert probe.engine_progress() == "The engine cannot start: there is no file x.gguf"


def test_the_sample_traffic_is_told(probe: Probe) -> None:
    probe.valkey.set("traffic", json.dumps({"message": "done, 57 requests sent"}))
    assert probe.traffic_progress() == "", "that was an earlier run"
    probe.valkey.set("lock", "1")
    probe.valkey.set("traffic", json.dumps({"message": "3 of 57 requests sent"}))
    assert probe.traffic_progress() == "sample traffic: 3 of 57 requests sent"
    probe.valkey.delete("lock")
    probe.valkey.set("traffic", json.dumps({"message": "done, 57 requests sent"}))
    assert probe.traffic_progress() == "sample traffic: done, 57 requests sent"


def test_a_valkey_that_is_away_is_no_error() -> None:
    probe = Probe("http://127.0.0.1:9", connect("unix:///nonexistent/valkey.sock"), "engine", "traffic", "lock")
    assert (probe.is_ready(), probe.engine_progress(), probe.traffic_progress()) == (False, "", "")
