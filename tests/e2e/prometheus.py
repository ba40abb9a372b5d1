"""A real Prometheus on a port of its own, for tests that ask it what people would."""

import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.stack import free_port


class Prometheus:
    """Scrapes `target` (host:port) once a second while its block lasts. `more`: lines of its configuration."""

    def __init__(self, target: str, folder: Path, more: str = "") -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._client = httpx.Client(base_url=self.url, timeout=5)
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: tierscope, static_configs: [{{targets: ['{target}']}}]}}]\n{more}"
        )
        self._argv = [
            *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"),
            *(f"--web.listen-address=127.0.0.1:{self._port}", "--log.level=error"),
        ]

    def __enter__(self) -> "Prometheus":
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(20)

    def query(self, promql: str) -> list[dict[str, Any]]:
        """What it answers now; nothing while it starts. Raises ValueError with its words for what is no PromQL."""
        try:
            answer = self._client.get("/api/v1/query", params={"query": promql})
        except httpx.TransportError:
            return []
        if answer.status_code in (400, 422):
            raise ValueError(answer.json()["error"])
        if answer.is_error:
            return []
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found
