"""The life of one engine in its worker: load beside the consumer, publish, obey, stop.

Imports torch only when it loads. Knows nothing about Celery (engine_worker.py does) or tokens (engine_host.py does).
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings

from dashboard import valkey
from dashboard.engine_control import Controller
from dashboard.engine_publisher import Publisher
from dashboard.engine_relay import HostError
from dashboard.jobs import Job
from dashboard.services.tiers import ensure_settings
from dashboard.streams import Event

if TYPE_CHECKING:
    from dashboard.engine_host import EngineHost

logger = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
Load = Callable[[str, Progress], "EngineHost"]

_current: "Hosting | None" = None


def current_host() -> "Hosting":
    assert _current is not None, "this worker hosts no engine"
    return _current


class Hosting:
    """`status` goes loading → ready → stopping, or loading → failed: then `progress` says why, until a restart."""

    def __init__(self, name: str, load: Load | None = None) -> None:
        self.name = name
        self.boot_id = uuid.uuid4().hex
        self._started_at = time.time()
        self.status = "loading"
        self._progress: tuple[str, float] = ("starting", 0.0)
        self._load = load or _load
        self._host: EngineHost | None = None
        self._controller: Controller | None = None
        self._publisher = Publisher(valkey.client(), name, self.boot_id, self.describe)

    def start(self) -> None:
        global _current
        _current = self
        self._publisher.start()
        threading.Thread(target=self._bring_up, name="load", daemon=True).start()

    def stop(self) -> None:
        """Requests get `DRAIN_SECONDS` to finish, then what lies in memory is written down and the last state told."""
        self.status = "stopping"
        self._publisher.publish()
        if self._controller is not None:
            self._controller.stop()
        if self._host is not None:
            self._host.stop(settings.DRAIN_SECONDS, settings.FLUSH_SECONDS)
        self._publisher.stop()

    def generate(self, job: Job) -> Generator[Event, None, None]:
        host = self._host
        if host is None or self.status != "ready":
            raise HostError(503, f"The engine is {self.status}.", code="engine_loading", is_retriable=True)
        return host.generate(job)

    def abort(self, run_id: str) -> None:
        if self._host is not None:
            self._host.abort(run_id)

    def describe(self) -> Mapping[str, Any]:
        """What is published every second under `ts:engine:<name>`."""
        told: dict[str, Any] = {
            "boot_id": self.boot_id,
            "started_at": self._started_at,
            "at": time.time(),
            "status": self.status,
            "progress": self._progress,
            "model_name": "",
            "exposition": "",
            "tiers": {},
            "requests_running": 0,
            "requests_waiting": 0,
        }
        return told | (self._host.describe() if self._host is not None else {})

    def _bring_up(self) -> None:
        started_at = time.monotonic()
        try:
            host = self._load(self.name, self._report)
            ensure_settings(self.name, host.capacities())
            self._host = host
            self._controller = Controller(host, valkey.client)
        except Exception as error:
            logger.exception("engine %s cannot start", self.name)
            self.status, self._progress = "failed", (str(error) or type(error).__name__, 0.0)
            return
        if self.status != "loading":  # stopped meanwhile
            return
        self.status, self._progress = "ready", ("ready", 1.0)
        self._controller.start()
        self._publisher.publish()
        logger.info("engine %s is ready after %.1f s", self.name, time.monotonic() - started_at)

    def _report(self, text: str, share: float) -> None:
        self._progress = (text, max(share, self._progress[1]))  # unpacked weights are then read, from the start


def _load(name: str, progress: Progress) -> "EngineHost":
    from dashboard.engine_host import load_host

    return load_host(name, progress)
