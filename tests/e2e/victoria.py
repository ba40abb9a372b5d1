"""A real VictoriaMetrics on a port of its own: it speaks Prometheus' API, and differs in what tests look at."""

import subprocess
import time
from pathlib import Path

import httpx

from tests.e2e.stack import free_port


class VictoriaMetrics:
    """Runs while its block lasts. Scrapes `target` (host:port) once a second where there is one."""

    def __init__(self, folder: Path, target: str = "", *more: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._client = httpx.Client(base_url=self.url, timeout=20)
        self._argv = [
            *("victoria-metrics", f"-storageDataPath={folder / 'victoria'}", f"-httpListenAddr=127.0.0.1:{port}"),
            *("-retentionPeriod=10y", "-memory.allowedBytes=64MiB", "-loggerLevel=ERROR", *more),
        ]
        if target:
            config = folder / "scrape.yml"
            config.write_text(
                "global: {scrape_interval: 1s}\n"
                f"scrape_configs: [{{job_name: tierscope, static_configs: [{{targets: ['{target}']}}]}}]\n"
            )
            self._argv.append(f"-promscrape.config={config}")

    def __enter__(self) -> "VictoriaMetrics":
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(20)

    def take(self, text: str) -> None:
        """Stores samples with times in milliseconds, and has them in its answers from then on."""
        self._client.post("/api/v1/import/prometheus", content=text).raise_for_status()
        self._client.get("/internal/force_flush").raise_for_status()
        self._client.get("/internal/resetRollupResultCache").raise_for_status()

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
