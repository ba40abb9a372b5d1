"""Makes a Celery worker on a queue `engine.<name>` the host of that engine, and stops both in order.

The worker starts consuming at once; the model loads beside it. At a stop Celery first takes no more messages, then the
engine drains and writes down what it holds, then Celery waits for its (by now finished) tasks.
"""

from typing import Any

from celery import bootsteps
from celery.worker.request import Request

from dashboard.valkey import ENGINE_QUEUE_PREFIX


class EngineStep(bootsteps.StartStopStep):
    """Celery's hook. Does nothing in workers that consume no engine queue."""

    requires = ("celery.worker.components:Pool",)

    def include_if(self, worker: Any) -> bool:
        return engine_name(worker) is not None

    def create(self, worker: Any) -> None:
        self._hosting: Any = None
        for queue in worker.app.amqp.queues.consume_from.values():
            queue.no_ack = True  # see Taken

    def start(self, worker: Any) -> None:
        from dashboard.engine_hosting import Hosting

        name = engine_name(worker)
        assert name is not None, "started without an engine queue"
        self._hosting = Hosting(name)
        self._hosting.start()

    def stop(self, worker: Any) -> None:
        if self._hosting is not None:
            self._hosting.stop()

    def terminate(self, worker: Any) -> None:
        self.stop(worker)


class Taken(Request):
    """A message that was received is gone: the job it names is taken once, and whoever waits for it notices a worker
    that died (services/dispatch.py). kombu would keep and delete a copy of each: two transactions before a first token.
    """

    def acknowledge(self) -> None:
        self.acknowledged = True


def engine_name(worker: Any) -> str | None:
    """The engine whose queue the worker consumes; None for other workers."""
    queues = list(worker.app.amqp.queues.consume_from)
    names = [queue.removeprefix(ENGINE_QUEUE_PREFIX) for queue in queues if queue.startswith(ENGINE_QUEUE_PREFIX)]
    if len(names) > 1:
        raise ValueError(f"A worker hosts one engine, not {len(names)}: {', '.join(names)}.")
    return names[0] if names else None
