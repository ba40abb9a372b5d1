"""Valkey: the clients every part shares, and the name of every key and channel. Knows nothing about what they hold."""

import asyncio
from functools import cache
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

PREFIX = "ts:"
TICK_CHANNEL = f"{PREFIX}tick"
ABORT_CHANNEL = f"{PREFIX}abort"
SAMPLE_TRAFFIC_KEY = f"{PREFIX}sample-traffic"  # string, JSON, TTL: how far the newest run is
SAMPLE_TRAFFIC_LOCK = f"{PREFIX}sample-traffic:lock"  # string, TTL: there while one runs
SAMPLE_TRAFFIC_RUNS = f"{PREFIX}sample-traffic:runs"  # counter

ENGINE_QUEUE_PREFIX = "engine."  # of Celery's queues

ENGINE_TTL_SECONDS = 5
FINAL_TTL_SECONDS = 3600
STREAM_TTL_SECONDS = 600

# The longest blocking read anywhere waits 5 s in the server: the socket has to outlast it.
_SOCKET_SECONDS = 10
_CONNECT_SECONDS = 3
# Once more at once: a pooled connection may have died with a restarted server. redis-py would try for 12 s by default,
# while a page, a health check or a client waits.
_NUM_RETRIES = 1

# redis-py's own bound is 100, but each request of /v1 that waits (128 may) or runs has a connection for its blocking
# read. Open pages have connections apart, so that however many there are, they never take one from a request.
_MAX_CONNECTIONS = 4096
MAX_EVENT_STREAMS = 100

_AsyncClients = WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis]
_async_clients: _AsyncClients = WeakKeyDictionary()
_event_clients: _AsyncClients = WeakKeyDictionary()


@cache
def client() -> redis.Redis:
    """This process's pooled client (threads share it); answers are text. Every call has a timeout."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        max_connections=_MAX_CONNECTIONS,
        socket_timeout=_SOCKET_SECONDS,
        socket_connect_timeout=_CONNECT_SECONDS,
        health_check_interval=30,
        retry=Retry(NoBackoff(), _NUM_RETRIES),
    )


def async_client() -> redis.asyncio.Redis:
    """The running event loop's pooled client; connections belong to the loop they were opened in."""
    return _of_this_loop(_async_clients, _MAX_CONNECTIONS)


def event_client() -> redis.asyncio.Redis:
    """Its like for pages that listen: one connection each, `MAX_EVENT_STREAMS` of them."""
    return _of_this_loop(_event_clients, MAX_EVENT_STREAMS)


def _of_this_loop(clients: _AsyncClients, max_connections: int) -> redis.asyncio.Redis:
    loop = asyncio.get_running_loop()
    if loop not in clients:
        clients[loop] = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            max_connections=max_connections,
            socket_timeout=_SOCKET_SECONDS,
            socket_connect_timeout=_CONNECT_SECONDS,
            health_check_interval=30,
            retry=AsyncRetry(NoBackoff(), _NUM_RETRIES),
        )
    return clients[loop]


def forget_clients() -> None:
    """Drops the cached clients, so that the next call reads `settings.REDIS_URL` again (tests; after a fork)."""
    client.cache_clear()
    _async_clients.clear()
    _event_clients.clear()


def engine_key(engine: str) -> str:
    """String, JSON, TTL `ENGINE_TTL_SECONDS`: what a living engine publishes every second."""
    return f"{PREFIX}engine:{engine}"


def final_key(engine: str, boot_id: str) -> str:
    """String, JSON, TTL `FINAL_TTL_SECONDS`: the newest of that run, so that its last increase is still recorded."""
    return f"{PREFIX}final:{engine}:{boot_id}"


def stream_key(request_id: str) -> str:
    """Stream, TTL `STREAM_TTL_SECONDS`: one request's events as they come."""
    return f"{PREFIX}stream:{request_id}"


def abort_key(request_id: str) -> str:
    """String with TTL: set when a client went away, for an engine that was not listening at that moment."""
    return f"{PREFIX}abort:{request_id}"


def engine_queue(engine: str) -> str:
    """List, Celery's: messages to the workers of one engine."""
    return f"{ENGINE_QUEUE_PREFIX}{engine}"


def control_key(engine: str) -> str:
    """List: operations an engine's control thread takes with BLPOP."""
    return f"{PREFIX}control:{engine}"


def engine_keys(connection: redis.Redis) -> list[str]:
    """The keys of every engine that is alive now, sorted."""
    return _scan(connection, f"{PREFIX}engine:*")


def final_keys(connection: redis.Redis) -> list[str]:
    """The keys of every engine run seen within the last `FINAL_TTL_SECONDS`, sorted."""
    return _scan(connection, f"{PREFIX}final:*")


def _scan(connection: redis.Redis, pattern: str) -> list[str]:
    return sorted(connection.scan_iter(match=pattern, count=500))
