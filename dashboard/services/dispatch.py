"""A request's way through the engines: choose one, send the job, follow its events, run it again if its worker died.

Knows nothing about HTTP or OpenAI's words; a refusal carries a status and one sentence. Nothing waits longer than the
limits in settings.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

import redis
import redis.asyncio
from django.conf import settings

from dashboard import jobs, stopping, streams, valkey
from dashboard.api.directory import EngineDirectory
from dashboard.jobs import Job
from dashboard.selectors.engines import LiveEngine
from dashboard.streams import Event

MAX_ATTEMPTS = 2
# The worker says "alive" every 3 s while it has nothing else to say.
_SILENCE_SECONDS = 15.0
# A taken job's first event follows within milliseconds; this much later it is not coming.
_TAKEN_SECONDS = 5.0
_UNREACHABLE = (redis.RedisError, OSError)


class DispatchError(Exception):
    """Why there is no answer: an HTTP status, one sentence, and when to try again."""

    def __init__(self, status: int, message: str, *, code: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class _LostError(Exception):
    """The run will not finish; the request can be run again if nothing of it was shown."""


@dataclass(frozen=True)
class Limits:
    max_waiting: int
    start_seconds: float
    loading_seconds: float

    @classmethod
    def from_settings(cls) -> "Limits":
        return cls(settings.MAX_WAITING_REQUESTS, settings.START_SECONDS, settings.LOADING_SECONDS)


class Dispatcher:
    """One a web process."""

    def __init__(
        self,
        directory: EngineDirectory,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        must_end: Callable[[], bool] = stopping.process.must_end,
    ) -> None:
        self._directory = directory
        self._limits = limits
        self._clock = clock
        self._must_end = must_end
        self._num_waiting = 0

    async def answer(self, job: Job, *, can_restart: bool = False) -> AsyncGenerator[Event, None]:
        """The events "token" and one "done". Raises DispatchError. Closing the iterator early aborts the run.

        `can_restart`: the reader shows nothing before the end; "restart" tells it to forget what came before.
        """
        patience = self._limits.loading_seconds
        has_shown = False
        for attempt in range(1, MAX_ATTEMPTS + 1):
            engine = await self._choose(job.model, patience)
            try:
                async with aclosing(self._run(replace(job, attempt=attempt), engine)) as events:
                    async for event in events:
                        has_shown = True
                        yield event
                return
            except (_LostError, streams.StreamLostError) as lost:
                if has_shown and not can_restart:
                    raise _interrupted() from lost
            if has_shown:
                yield {"type": "restart"}
            patience = self._limits.start_seconds
        raise _interrupted()

    async def _choose(self, model: str, patience: float) -> LiveEngine:
        """The least loaded engine that serves `model`; waits up to `patience` seconds for one that is loading."""
        until, is_fresh = self._clock() + patience, False
        while True:
            if self._must_end():
                raise _stopping()
            try:
                told = await self._directory.engines(valkey.async_client(), fresh=is_fresh)
                engines = list(told.values())
            except redis.RedisError:
                refusal = _broker_away()
            else:
                ready = [e for e in engines if e.status == "ready" and e.model_name == model]
                if ready:
                    return min(ready, key=lambda engine: engine.requests_running + engine.requests_waiting)
                refusal = _no_engine(model, engines)
                can_wait = engines or patience > self._limits.loading_seconds
                if is_fresh and (refusal.code == "model_not_found" or not can_wait):
                    raise refusal
            if self._clock() > until:
                raise refusal
            if is_fresh:
                await asyncio.sleep(0.25)
            is_fresh = True

    async def _run(self, job: Job, engine: LiveEngine) -> AsyncGenerator[Event, None]:
        if max(self._num_waiting, engine.requests_waiting) >= self._limits.max_waiting:
            raise DispatchError(
                429,
                f"{self._limits.max_waiting} requests are waiting already; try again in a few seconds.",
                code="too_many_requests",
                retry_after_seconds=5,
            )
        is_over = False
        waiting = _Waiting(self)
        try:
            await self._send(job, engine)
            async with aclosing(self._follow(job, engine, waiting)) as events:
                async for event in events:
                    is_over = event["type"] == "done"
                    yield event
        except DispatchError as refused:
            is_over = refused.code not in ("not_started", "stopping")
            raise
        finally:
            waiting.end()
            await (_forget(job) if is_over else _withdraw(job))

    async def _send(self, job: Job, engine: LiveEngine) -> None:
        try:
            await jobs.put(valkey.async_client(), job, engine.name, ttl_seconds=int(self._limits.start_seconds))
        except _UNREACHABLE:
            raise _broker_away() from None

    async def _follow(self, job: Job, engine: LiveEngine, waiting: "_Waiting") -> AsyncGenerator[Event, None]:
        sent_at = heard_at = self._clock()
        boot_id: str | None = None
        async for event in streams.read(valkey.async_client(), job.run_id):
            if self._must_end() and (event is None or event["type"] == "token"):
                raise _stopping()
            if event is None:
                await self._check(job, engine, boot_id, silent_seconds=self._clock() - heard_at)
                if boot_id is None and self._clock() - sent_at > self._limits.start_seconds:
                    raise DispatchError(
                        503,
                        "The engine did not get to this request in time; try again later.",
                        code="not_started",
                        retry_after_seconds=10,
                    )
                continue
            heard_at = self._clock()
            if event["type"] == "started":
                boot_id = event["boot_id"]
                waiting.end()
            elif event["type"] == "error":
                _raise_error(event)
            elif event["type"] in ("token", "done"):
                yield event
                if event["type"] == "done":
                    return

    async def _check(self, job: Job, engine: LiveEngine, boot_id: str | None, *, silent_seconds: float) -> None:
        """Raises _LostError when the run cannot go on: its worker is gone, another one by now, or silent."""
        try:
            connection = valkey.async_client()
            alive = (await self._directory.engines(connection, fresh=silent_seconds > 1)).get(engine.name)
            is_taken = boot_id is None and not await connection.exists(jobs.job_key(job.run_id))
        except redis.RedisError:
            alive, is_taken = engine, False
        # A message that the last boot had fetched, or was just being sent, died with it: also if it never started.
        if alive is None or alive.boot_id != (boot_id or engine.boot_id):
            raise _LostError("the worker is gone")
        if silent_seconds > (_TAKEN_SECONDS if is_taken else _SILENCE_SECONDS) and (is_taken or boot_id is not None):
            raise _LostError("the worker says nothing any more")


class _Waiting:
    """Counts one request as waiting until its run has started or is over."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher: Dispatcher | None = dispatcher
        dispatcher._num_waiting += 1

    def end(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher._num_waiting -= 1
            self._dispatcher = None


async def _forget(job: Job) -> None:
    """The events were read to their end: ten minutes of answers would fill the memory that the broker lives in."""
    with suppress(redis.RedisError):
        await valkey.async_client().unlink(valkey.stream_key(job.run_id))


async def _withdraw(job: Job) -> None:
    """Whoever has the job stops; whoever gets it later finds nothing. A dead Valkey needs no telling."""
    with suppress(redis.RedisError):
        async with valkey.async_client().pipeline(transaction=False) as pipeline:
            pipeline.delete(jobs.job_key(job.run_id))
            pipeline.set(valkey.abort_key(job.run_id), "1", ex=valkey.STREAM_TTL_SECONDS)
            pipeline.publish(valkey.ABORT_CHANNEL, job.run_id)
            await pipeline.execute()


def _raise_error(event: Event) -> None:
    if event.get("is_retriable"):
        raise _LostError(event["message"])
    raise DispatchError(event["status"], event["message"], code=event["code"])


def _interrupted() -> DispatchError:
    return DispatchError(
        503,
        "The engine worker that answered this request went away before it was done; send the request again.",
        code="worker_lost",
        retry_after_seconds=5,
    )


def _stopping() -> DispatchError:
    return DispatchError(
        503, "This server is stopping; send the request again.", code="stopping", retry_after_seconds=5
    )


def _broker_away() -> DispatchError:
    return DispatchError(
        503,
        "Valkey, the message broker, cannot be reached; try again in a moment.",
        code="broker_unavailable",
        retry_after_seconds=2,
    )


def _no_engine(model: str, engines: list[LiveEngine]) -> DispatchError:
    for engine in engines:
        if engine.status == "loading" and engine.model_name in ("", model):
            how_far = f"{engine.progress_text}, {engine.progress:.0%}"
            return DispatchError(
                503,
                f"The engine “{engine.name}” is still loading its model ({how_far}); try again shortly.",
                code="engine_loading",
                retry_after_seconds=5,
            )
    if any(engine.status == "ready" for engine in engines):
        served = ", ".join(sorted({engine.model_name for engine in engines if engine.model_name}))
        return DispatchError(404, f"There is no model “{model}” here; there is {served}.", code="model_not_found")
    return DispatchError(
        503, "No engine is running; start an engine worker and try again.", code="no_engine", retry_after_seconds=10
    )
