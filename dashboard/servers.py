"""Do the servers answer that somebody else runs for us? Asked once, before anything starts: a person is waiting.

Whoever runs already tries again for ever instead. Never repeats a URL: there may be a password in it.
"""

from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from redis.backoff import NoBackoff
from redis.retry import Retry

_SECONDS = 4


class ServerError(Exception):
    """Who does not answer, why, and what was expected, in one sentence."""


def ensure_valkey() -> None:
    """Raises ServerError. The embedded Valkey is not asked: it starts later."""
    if settings.VALKEY_IS_EMBEDDED:
        return
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=Retry(NoBackoff(), 0)
    )
    try:
        client.ping()
    except (redis.RedisError, OSError) as error:
        raise ServerError(
            f"REDIS_URL: no Valkey or Redis answers at {_place(settings.REDIS_URL)} ({_reason(error)}); "
            "start it or correct the variable, or unset it for the embedded Valkey."
        ) from None
    finally:
        client.close()


def ensure_database() -> None:
    """Raises ServerError."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        raise ServerError(
            f"DATABASE_URL: the database cannot be opened ({_reason(error)}); "
            "start its server or correct the variable, or unset it for SQLite in TIERSCOPE_HOME."
        ) from None


def _place(url: str) -> str:
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}"


def _reason(error: Exception) -> str:
    """On one line: psycopg writes several."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
