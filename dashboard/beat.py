"""The schedule of the `default` queue, in a thread of its worker: it ends when the worker does, however that ends.

Celery's own `--beat` forks a process. A killed worker leaves that process behind, it goes on sending beside the next
worker's, and nobody starts it again when it dies (a broker away for long, a full disk under its file). Knows nothing
about what the tasks do.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from celery import bootsteps
from celery.beat import Scheduler, Service

logger = logging.getLogger(__name__)

_QUEUE = "default"
_MAX_SLEEP_SECONDS = 1  # the longest that a stop has to wait for a sleeping clock


class Clock(Protocol):
    """Celery's beat service: `start` runs until `stop` is called from another thread, or raises."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class BeatThread(threading.Thread):
    """Runs one clock after the other: a new one `pause_seconds` after an error, none once it is stopped."""

    def __init__(self, make: Callable[[], Clock], *, pause_seconds: float = 1, patience_seconds: float = 3) -> None:
        super().__init__(name="beat", daemon=True)
        self._make = make
        self._pause_seconds = pause_seconds
        self._patience_seconds = patience_seconds
        self._stopped = threading.Event()
        self._clock: Clock | None = None

    def run(self) -> None:
        while not self._stopped.is_set():
            self._clock = self._make()
            try:
                self._clock.start()
            except Exception:
                logger.exception("the schedule failed and starts again")
                self._stopped.wait(self._pause_seconds)

    def stop(self) -> None:
        """Returns within `patience_seconds`: a clock that waits for a broker which is away does not listen."""
        self._stopped.set()
        if self._clock is not None:
            self._clock.stop()
        self.join(self._patience_seconds)


class BeatStep(bootsteps.StartStopStep):
    """Celery's hook. Does nothing in workers of other queues."""

    requires = ("celery.worker.components:Pool",)

    def include_if(self, worker: Any) -> bool:
        return _QUEUE in worker.app.amqp.queues.consume_from

    def create(self, worker: Any) -> None:
        self._thread = BeatThread(lambda: _service(worker.app))

    def start(self, worker: Any) -> None:
        self._thread.start()

    def stop(self, worker: Any) -> None:
        self._thread.stop()

    def terminate(self, worker: Any) -> None:
        self.stop(worker)


def _service(app: Any) -> Clock:
    """Nothing of the schedule is kept: the longest interval is ten minutes, and tasks may run twice."""
    app.set_current()
    service: Clock = Service(app, max_interval=_MAX_SLEEP_SECONDS, scheduler_cls=Scheduler)
    return service
