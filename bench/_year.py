"""Builds a store with a year of series in a SQLite file, as the recorder would have left it. Measures nothing.

Reckoned in SQL and packed: a year of 10 s scrapes through the recorder would take hours. The same buckets stay beside
it as rows of a plain table, `bench_rows`: what a query would have to add up otherwise.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections

from bench._packed import Row, store
from dashboard.models import Series, Source
from dashboard.selectors.kept import kept_seconds, retention
from dashboard.services.totals import assign

DAY = 86400
NOW = int(time.time())  # views ask the clock: the year ends now
ENGINES = ("local", "east/0", "east/1")
TIERS = ("gpu", "cpu", "disk", "remote")
LES = ("0.02", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "+Inf")
LOAD_LES = (
    *("0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05"),
    *("0.1", "0.25", "0.5", "1", "2.5", "+Inf"),
)
_MEAN = 100  # an amount a bucket of 10 s
Fact = tuple[str, str, str]  # metric, cache_tier, detail


@contextmanager
def a_year(*, more: Iterable[Fact] = ()) -> Iterator[int]:
    """The default connection goes to the filled store; its number of buckets. `more` is filled in hours and days."""
    with a_store():
        yield _fill(more)


@contextmanager
def a_store() -> Iterator[None]:
    """The default connection goes to a new store that is empty; so is the plain table."""
    own_settings, own_connection = connections.settings["default"], connections["default"]
    with TemporaryDirectory(prefix="tierscope-bench-") as folder:
        name = str(Path(folder) / "year.sqlite3")
        options = settings.DATABASES["default"].get("OPTIONS", {})
        connections.settings["default"] = {
            **own_settings,
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": name,
            "OPTIONS": options,
        }
        del connections["default"]
        try:
            call_command("migrate", verbosity=0)
            with connection.cursor() as cursor:
                cursor.execute(_PLAIN)
            yield
        finally:
            connections["default"].close()
            connections.settings["default"] = own_settings
            connections["default"] = own_connection


def _fill(more: Iterable[Fact]) -> int:
    """What only tiers and tenants have is filled in hours and days: a month is read from these, minutes take long."""
    prompts, costs = list(_series(_facts())), list(_series([*_tier_facts(), *_tenant_facts(), *more]))
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=OFF")
        for resolution, seconds in kept_seconds(retention()).items():
            start = (NOW - min(seconds, 365 * DAY)) // DAY * DAY
            for series_id in prompts + (costs if resolution >= 3600 else []):
                cursor.execute(_INSERT, [start, resolution, NOW, series_id, resolution, _MEAN * resolution // 10])
        num_rows = store(_rows(cursor, [*prompts, *costs]))
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return num_rows


def kept_plain(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows, which then lie in the plain table, too."""
    told = iter(rows)
    with connection.cursor() as cursor:
        while together := list(islice(told, 10_000)):
            cursor.executemany("INSERT INTO bench_rows VALUES (%s, %s, %s, %s, %s)", together)
            yield from together


def _rows(cursor: Any, series_ids: Iterable[int]) -> Iterator[Row]:
    for series_id in series_ids:
        cursor.execute("SELECT * FROM bench_rows WHERE series_id = %s ORDER BY resolution, start_at", [series_id])
        yield from cursor.fetchall()


_PLAIN = """
CREATE TABLE bench_rows (
    series_id bigint, resolution integer, start_at bigint, value bigint, num_samples integer,
    PRIMARY KEY (series_id, resolution, start_at)
) WITHOUT ROWID
"""
_INSERT = """
WITH RECURSIVE starts(at) AS (SELECT %s UNION ALL SELECT at + %s FROM starts WHERE at < %s)
INSERT INTO bench_rows (series_id, resolution, start_at, value, num_samples)
SELECT %s, %s, at, %s + (at / 7) %% 50, 1 FROM starts
"""


def _series(facts: Iterable[Fact]) -> Iterator[int]:
    source, _ = Source.objects.get_or_create(name="bench", kind=Source.Kind.EMBEDDED)
    for (metric, tier, detail), engine in product(facts, ENGINES):
        row = {"metric": metric, "cache_tier": tier, "detail": detail}
        (one,) = assign([Series(source=source, engine=engine, model_name="m", **row)])
        one.save()
        yield one.pk


def _tier_facts() -> Iterator[Fact]:
    """All that an engine of ours tells of its tiers, and each of them moving all the time."""
    yield from (("prefill_tokens", "", ""), ("prefill_microseconds", "", ""))
    for tier in TIERS:
        for metric in ("stored_blocks", "stored_bytes", "store_microseconds", "missed_tokens", "load_skipped_tokens"):
            yield metric, tier, ""
        yield from (("tier_errors", tier, operation) for operation in ("load", "store"))
        yield from (("evicted_blocks", tier, reason) for reason in ("capacity", "resize", "clear", "corrupt"))
        yield from (("entered_tokens", tier, origin) for origin in ("computed", "found", *TIERS) if origin != tier)
        yield from (("left_tokens", tier, way) for way in ("freed", "dropped", *TIERS) if way != tier)
    for tier in TIERS[1:]:
        yield from ((metric, tier, "") for metric in ("loaded_blocks", "loaded_bytes", "load_microseconds"))
        yield from (("load_times", tier, bound) for bound in LOAD_LES)


def tenants() -> list[str]:
    """As many as are counted by name unless somebody wants more."""
    return ["common", "other", *(f"tenant-{number}" for number in range(settings.MAX_TENANTS))]


def _tenant_facts() -> Iterator[Fact]:
    """All of them in every tier all the time."""
    for tenant in tenants():
        yield from ((f"tenant_{metric}_tokens", "", tenant) for metric in ("prompt", "computed"))
        yield from (("tenant_hit_tokens", tier, tenant) for tier in TIERS)


def _facts() -> Iterator[Fact]:
    for metric in ("scrapes", "prompt_tokens", "computed_tokens", "generated_tokens"):
        yield metric, "", ""
    for tier in TIERS:
        for metric in ("hit_tokens", "resident_tokens", "capacity_tokens"):
            yield metric, tier, ""
        yield from (("ttft", tier, bound) for bound in LES)
    yield "requests", "", "stop"
