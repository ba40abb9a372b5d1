"""A source that cannot be read, so that there is something to alert of, and a server that takes alerts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from dashboard.models import Source

T0 = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def stale_source() -> Source:
    """One that could not be read since long before T0."""
    return Source.objects.create(name="gpu-7", kind="vllm", last_ok_at=at(-60), last_scraped_at=at(-1))


def recover(source: Source, now: datetime) -> None:
    Source.objects.filter(pk=source.pk).update(last_ok_at=now, last_scraped_at=now)


def fail(source: Source, now: datetime) -> None:
    Source.objects.filter(pk=source.pk).update(last_ok_at=now - timedelta(hours=1), last_scraped_at=now)


@dataclass
class Receiver:
    """A real server that takes alerts, or answers a status that a test says."""

    url: str = ""
    status: int = 200
    told: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.headers.append(dict(self.headers.items()))
            if receiver.status == 200:
                receiver.told.append(json.loads(body))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/alerts"
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
