"""One request's events through a Valkey stream: the engine worker writes, the web process reads.

Knows nothing about tokens or HTTP: an event is a JSON object with a "type". Every event carries a sequence number, so
that a repeated write is dropped and a lost one is noticed (a restarted Valkey may have forgotten the stream).
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import redis
import redis.asyncio

from dashboard import valkey

Event = dict[str, Any]

# A Valkey restart takes well under a second; after these 8 s the request is given up.
_RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_UNREACHABLE = (redis.ConnectionError, redis.TimeoutError)
_MAX_EVENTS_A_READ = 1000


_BEGIN = """
local taken = redis.call('GETDEL', KEYS[1])
if taken then
  redis.call('XADD', KEYS[2], '*', 'seq', 0, 'event', ARGV[1])
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
return taken
"""


class StreamLostError(Exception):
    """Events are missing between two that were read: what the client has must not be continued."""


class StreamWriter:
    """Appends the events of one run; every write renews the stream's time to live."""

    def __init__(self, connection: redis.Redis, run_id: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._connection = connection
        self._key = valkey.stream_key(run_id)
        self._sleep = sleep
        self._num_written = 0

    def begin(self, key: str, event: Mapping[str, Any]) -> str | None:
        """Takes away what lies under `key` and, only if there was something, writes the first event: in one round trip,
        since a first token waits for it. Raises redis.RedisError.
        """
        taken = self._connection.register_script(_BEGIN)(
            keys=[key, self._key], args=[_as_text(event), valkey.STREAM_TTL_SECONDS]
        )
        self._num_written += bool(taken)
        return cast(str | None, taken)

    def write(self, event: Mapping[str, Any]) -> None:
        """Raises redis.ConnectionError or redis.TimeoutError when Valkey stays away for 8 s."""
        fields = {"seq": self._num_written, "event": _as_text(event)}
        for delay in _RETRY_SECONDS:
            try:
                self._append(fields)
                break
            except _UNREACHABLE:
                self._sleep(delay)
        else:
            self._append(fields)
        self._num_written += 1

    def _append(self, fields: dict[str, Any]) -> None:
        pipeline = self._connection.pipeline(transaction=False)
        pipeline.xadd(self._key, cast(Any, fields))
        pipeline.expire(self._key, valkey.STREAM_TTL_SECONDS)
        pipeline.execute()


def _as_text(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"))


async def read(
    connection: redis.asyncio.Redis, run_id: str, *, block_seconds: float = 1.0
) -> AsyncIterator[Event | None]:
    """The run's events in order, for as long as the caller wants; None after each `block_seconds` without one.

    An unreachable Valkey reads as silence: the caller's own limits decide how long to wait. Raises StreamLostError.
    """
    key, last_id, num_read = valkey.stream_key(run_id), "0", 0
    while True:
        entries = await _next_entries(connection, key, last_id, block_seconds)
        if not entries:
            yield None
        for entry_id, fields in entries:
            last_id = entry_id
            seq = int(fields["seq"])
            if seq > num_read:
                raise StreamLostError(f"event {num_read} of run {run_id} is missing")
            if seq == num_read:
                num_read += 1
                yield json.loads(fields["event"])


async def _next_entries(
    connection: redis.asyncio.Redis, key: str, last_id: str, block_seconds: float
) -> list[tuple[str, dict[str, str]]]:
    try:
        answer = await connection.xread({key: last_id}, count=_MAX_EVENTS_A_READ, block=int(block_seconds * 1000))
    except _UNREACHABLE:
        await asyncio.sleep(min(block_seconds, 0.2))
        return []
    if not answer:
        return []
    # RESP2 answers with a list of [key, entries], RESP3 with a mapping.
    pairs = answer.items() if isinstance(answer, dict) else answer
    return [entry for _, entries in pairs for entry in _flat(entries)]


def _flat(entries: list[Any]) -> list[Any]:
    """redis-py wraps the entries of a RESP3 answer in one more list."""
    return entries[0] if entries and isinstance(entries[0], list) else entries
