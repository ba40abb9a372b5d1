"""Takes one job, lets the host generate, and writes what happens into the run's stream. Runs in a Celery task's thread.

Knows nothing about tokens: events are the host's, this only passes them on and writes the request log.
"""

import logging
from collections.abc import Generator
from contextlib import closing
from typing import Protocol

import redis

from dashboard import jobs, valkey
from dashboard.jobs import Job
from dashboard.services.request_log import log_request
from dashboard.streams import Event, StreamWriter

logger = logging.getLogger(__name__)


class HostError(Exception):
    """Why the host does not run a job: a status and one sentence. Retriable: another worker, or this one later, may."""

    def __init__(self, status: int, message: str, *, code: str, is_retriable: bool = False) -> None:
        super().__init__(message)
        self.event: Event = {
            "type": "error",
            "status": status,
            "message": message,
            "code": code,
            "is_retriable": is_retriable,
        }


class Host(Protocol):
    name: str
    boot_id: str

    def generate(self, job: Job) -> Generator[Event, None, None]:
        """ "token" events and one "done"; "alive" whenever nothing happened for 3 s. Closing it aborts.

        Raises HostError.
        """
        ...

    def abort(self, run_id: str) -> None: ...


def serve(host: Host, run_id: str, connection: redis.Redis) -> None:
    writer = StreamWriter(connection, run_id)
    job = jobs.take(writer, run_id, {"type": "started", "engine": host.name, "boot_id": host.boot_id})
    if job is None:
        return
    try:
        last = _relay(host, job, writer, connection)
    except redis.RedisError as error:
        logger.warning("request %s was given up: its stream cannot be written: %s", job.request_id, error)
        return
    if last is not None:
        log_request(job, host.name, last)


def _relay(host: Host, job: Job, writer: StreamWriter, connection: redis.Redis) -> Event | None:
    """The "done" event, or None where there was none."""
    try:
        with closing(host.generate(job)) as events:
            for number, event in enumerate(events):
                if event["type"] == "done":
                    return _end(writer, event)
                writer.write(event)
                # An abort may have been published before the engine had the request, or while nobody listened.
                if (number == 0 or event["type"] == "alive") and connection.exists(valkey.abort_key(job.run_id)):
                    host.abort(job.run_id)
    except HostError as refusal:
        writer.write(refusal.event)
    except redis.RedisError:
        raise
    except Exception as error:
        logger.exception("request %s failed", job.request_id)
        writer.write(HostError(500, f"The engine worker failed: {type(error).__name__}.", code="engine_error").event)
    return None


def _end(writer: StreamWriter, done: Event) -> Event:
    """A request that ended by an error is an error to the caller too, though its usage is logged like any other's."""
    if done["finish_reason"] == "error":
        is_retriable = bool(done.get("is_retriable"))
        writer.write(HostError(500, done["error"], code="engine_error", is_retriable=is_retriable).event)
    else:
        writer.write(done)
    return done
