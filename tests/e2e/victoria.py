"""A real VictoriaMetrics on a port of its own: it speaks Prometheus' API, and differs in what tests look at."""

import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.stack import free_port


class VictoriaMetrics:
    """Runs while its block lasts, and has what it is given."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._client = httpx.Client(base_url=self.url, timeout=20)
        self._argv = [
            *("victoria-metrics", f"-storageDataPath={folder / 'victoria'}", f"-httpListenAddr=127.0.0.1:{port}"),
            *("-retentionPeriod=10y", "-memory.allowedBytes=64MiB", "-loggerLevel=ERROR"),
        ]

    def __enter__(self) -> "VictoriaMetrics":
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(20)

    def take(self, text: str, *, forget: bool = True) -> None:
        """Stores samples with times in milliseconds; it is to `forget` its answers of before, which lack them."""
        self._client.post("/api/v1/import/prometheus", content=text).raise_for_status()
        self._client.get("/internal/force_flush").raise_for_status()
        if forget:
            self._client.get("/internal/resetRollupResultCache").raise_for_status()

    def query(self, promql: str, at: float) -> list[dict[str, Any]]:
        """What it answers for that second, which is not of the last 30. Raises HTTPError for what is no PromQL."""
        answer = self._client.get("/api/v1/query", params={"query": promql, "time": at}).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                if self._client.get("/health").is_success:
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline
            time.sleep(0.1)
