"""Real databases for the tests of the series store: a SQLite file and a PostgreSQL, with real commits and threads.

pytest-django's own database is wrapped in a transaction that never commits: several workers could not be shown with it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import dj_database_url
from django.core.management import call_command
from django.db import connection, connections

from dashboard.models import AlertRule, ApiKey, RequestLog, Retention, Source, TierChange, Webhook

Answer = TypeVar("Answer")


def in_a_thread(call: Callable[[], Answer]) -> Answer:
    """For a pool: what it says; the connection that this thread opened for it is closed."""
    try:
        return call()
    finally:
        connections["default"].close()


@contextmanager
def used_as_default(url: str, blocker: Any, **settings: Any) -> Iterator[None]:
    """Within it every thread's default connection goes to `url`."""
    own_settings, own_connection = connections.settings["default"], connections["default"]
    connections.settings["default"] = {**own_settings, **dj_database_url.parse(url), **settings}
    del connections["default"]
    try:
        with blocker.unblock():
            yield
            connections["default"].close()
    finally:
        connections.settings["default"] = own_settings
        connections["default"] = own_connection


def sqlite_settings(url: str) -> dict[str, Any]:
    """As dashboard/settings.py has them for a file: writers wait for their turn instead of failing."""
    from django.conf import settings

    return {"OPTIONS": settings.DATABASES["default"]["OPTIONS"]} if url.startswith("sqlite") else {}


def migrated(url: str, blocker: Any) -> str:
    with used_as_default(url, blocker, **sqlite_settings(url)):
        call_command("migrate", verbosity=0)
    return url


def empty() -> None:
    """No source, series, bucket, request or mark is left of an earlier example."""
    with connection.cursor() as cursor:
        for table in ("head", "chunk", "totalhead", "totalchunk", "enginerun", "series", "totalseries"):
            cursor.execute(f"DELETE FROM dashboard_{table}")
    for model in (Source, RequestLog, TierChange, Retention, ApiKey, AlertRule, Webhook):
        model._base_manager.all().delete()
