"""What is wrong with REDIS_URL or DATABASE_URL, in words that never repeat it: there may be a password in it.

Looks at the text only; whether anybody answers there is servers.py's to find out.
"""

from urllib.parse import urlsplit

from redis.connection import parse_url

REDIS_EXPECTED = "Expected redis://HOST:PORT/0, rediss://… for TLS, or unix:///PATH?db=0."
DATABASE_EXPECTED = "Expected postgres://USER:PASSWORD@HOST/NAME or sqlite:////PATH."
DATABASE_ENGINES = ("django.db.backends.sqlite3", "django.db.backends.postgresql")


def redis_problem(url: str) -> str:
    """What ends the sentence “REDIS_URL …”; "" where every client that reads it understands the same."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return (
            "has a port that is not a number from 1 to 65535 (a / # ? or @ in a password is written as %2F %23 %3F %40)"
        )
    if parts.scheme not in ("redis", "rediss", "unix"):
        return "starts with a scheme that no Valkey client speaks" if parts.scheme else "has no scheme"
    if parts.scheme == "unix" and not parts.path:
        return "names no socket"
    if parts.scheme != "unix" and (not parts.hostname or port == 0):
        return "names no host"
    return _database_problem(url, parts.path if parts.scheme != "unix" else "")


def _database_problem(url: str, path: str) -> str:
    """redis-py reads a database that is no number as 0, Celery refuses it."""
    number = path.strip("/")
    if number and not number.isdecimal():
        return "has a database that is not a number"
    try:
        parse_url(url)  # type: ignore[no-untyped-call] # it has no types
    except ValueError:
        return "has a query that no Valkey client understands"
    return ""
