"""What does packing the head cost with 50,000 series, and does it let the recorder write meanwhile? On PostgreSQL.

500 engines with 88 counters and 12 gauges each: nine minutes of rows are in the head of every one, and chunks that
they are added to, as after every ten minutes. The recorder adds to 20 engines at a time all the while.
"""

import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result, compare

NUM_ENGINES, NUM_TOGETHER = 500, 20
SECONDS = 600  # between two packings of a series
BAR_CORES, BAR_WAIT_MS, BAR_MIB = 0.1, 1_000.0, 256.0
_TIERS = ("gpu", "cpu", "disk", "remote")
_GAUGES = [(metric, tier, "") for metric in ("resident_tokens", "capacity_tokens", "used_bytes") for tier in _TIERS]
_FACTS = [*_GAUGES, *(("load_times", _TIERS[number % 4], str(number)) for number in range(88))]


def run() -> Iterator[Result]:
    import django

    django.setup()
    from bench._postgres import a_postgres_store
    from dashboard.models import Series
    from dashboard.services import chunks

    with a_postgres_store() as postgres:
        _engines()
        start = int(time.time()) // 3_600 * 3_600
        _tell(start)
        chunks.settle(now=datetime.fromtimestamp(start + SECONDS, UTC))
        _tell(start + SECONDS)
        began, cpu = time.perf_counter(), time.process_time() + postgres.cpu_seconds()
        with _recorder(start + 2 * SECONDS) as waits:
            num_moved = chunks.settle(now=datetime.fromtimestamp(start + 2 * SECONDS, UTC))
        cpu = time.process_time() + postgres.cpu_seconds() - cpu
        what = f"packing {num_moved:,} series, {time.perf_counter() - began:.0f} s, the recorder's work with it"
        yield compare(
            what,
            ours=cpu / SECONDS,
            reference=1.0,
            reference_name="one core",
            unit="cores",
            bar=BAR_CORES,
            better="lower",
        )
        for name, waited in (("p50", median(waits)), ("longest", max(waits))):
            what = f"recording {NUM_TOGETHER} engines meanwhile, {name} of {len(waits)}"
            yield compare(
                what,
                ours=1e3 * waited,
                reference=BAR_WAIT_MS,
                reference_name="the bar",
                unit="ms",
                bar=1,
                better="lower",
            )
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield compare(
            f"memory, {Series.objects.count():,} series",
            ours=used,
            reference=BAR_MIB,
            reference_name="the bar",
            unit="MiB",
            bar=1,
            better="lower",
        )


def _engines() -> None:
    from dashboard.models import Source
    from dashboard.services.increases import create_series

    for number in range(NUM_ENGINES):
        source = Source.objects.create(name=f"e{number}", kind="tierscope", is_enabled=False)
        create_series((source.pk, source.name, ("m", *fact)) for fact in _FACTS)


def _tell(start: int) -> None:
    """A reading of every series each ten seconds, until a minute before the next packing."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_HEAD, [start, start + SECONDS - 70])
        cursor.execute(_TOTAL_HEAD, [start, start + SECONDS - 70])
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def _recorder(at: int) -> Iterator[list[float]]:
    """How long each of its transactions took."""
    from django.db import connections, transaction

    from dashboard.models import Series
    from dashboard.services.amounts import Amount
    from dashboard.services.head import add_amounts

    ids = list(Series.objects.order_by("pk").values_list("pk", flat=True)[: NUM_TOGETHER * len(_FACTS)])
    waits: list[float] = []
    is_over = threading.Event()

    def record() -> None:
        while not is_over.wait(0.5):
            began = time.perf_counter()
            with transaction.atomic():
                add_amounts(Amount(pk, at + 10 * len(waits), 5) for pk in ids)
            waits.append(time.perf_counter() - began)
        connections["default"].close()

    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        yield waits
    finally:
        is_over.set()
        recorder.join()


_HEAD = """
INSERT INTO dashboard_head (series_id, start_at, value, num_samples)
SELECT series.id, at, 100 + (series.id * at) %% 977, 1
FROM dashboard_series AS series, generate_series(%s::bigint, %s, 10) AS at
"""
_TOTAL_HEAD = """
INSERT INTO dashboard_totalhead (series_id, start_at, value, num_samples)
SELECT total.id, at, 50000, 500 FROM dashboard_totalseries AS total, generate_series(%s::bigint, %s, 10) AS at
WHERE total.metric = 'load_times'
"""
