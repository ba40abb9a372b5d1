"""Does the store hold a fleet? 500 sources with 6 series each, read every 10 s, in a real PostgreSQL.

Written as a worker writes it (bench/_ingest.py). Read: all that the overview asks of the store for 30 days, of which it
looks at hours and days alone, so that only these are filled for 500 sources, and six gauges each. Beside a real
Prometheus: fewer sources, as many for both, with every resolution that is left after 30 days here and every scrape of
10 s there; both are asked for hit rates by tier in steps of 6 hours, and have to answer the same.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result, compare

NUM_BESIDE = 3  # sources that are in both stores: promtool and Prometheus take minutes to make their blocks
BAR_SAMPLES = 20_000
BAR_OVERVIEW_MS = 150.0
BAR_TIME, BAR_DISK = 0.5, 3.0
ROUNDS = 9
_HOUR, _STEP = 3_600, 6 * 3_600


def run() -> Iterator[Result]:
    import django

    django.setup()
    yield from _writing()
    yield from _reading()
    yield from _beside_prometheus()


def _writing() -> Iterator[Result]:
    from bench import _ingest
    from bench._postgres import a_postgres_store

    with a_postgres_store() as postgres, _ingest.engines_served() as url:
        sources = _ingest.add_sources(url)
        beat = _ingest.on_its_beat(postgres)
        what = f"ingest {len(sources)} x 6 at 10 s, {beat.num_missed} missed"
        cores = beat.our_cores + beat.postgres_cores
        yield compare(what, ours=cores, reference=1.0, reference_name="one core", unit="cores", bar=1, better="lower")
        for name, is_read in (("with the texts read", True), ("recording alone", False)):
            fast = _ingest.as_fast_as_it_can(postgres, sources, is_read=is_read)
            cpu = f"{fast.our_cpu_ms:.0f} + {fast.postgres_cpu_ms:.0f} ms of CPU a 1,000"
            bar: Any = {"reference": BAR_SAMPLES, "reference_name": f"the bar; {cpu}", "bar": 1, "better": "higher"}
            yield compare(f"write path, {name}", ours=fast.rate, unit="samples/s", **bar)


def _reading() -> Iterator[Result]:
    from bench import _gauges, _month, _overview_store
    from bench._ingest import NUM_SOURCES
    from bench._postgres import a_postgres_store

    with a_postgres_store():
        now = int(time.time())
        start = now // _HOUR * _HOUR - _month.DAYS * _month.DAY
        num_wrong = _month.differences(start)
        assert not num_wrong, f"{num_wrong} rows are not what the recorder leaves"
        sources = _month.sources_of(NUM_SOURCES)
        num_rows = _month.fill(sources, start, dict.fromkeys((3_600, 86_400), _month.DAYS * _month.DAY))
        num_rows += _gauges.fill(sources, start, now)
        _vacuum()
        for of, engine in ((f"{NUM_SOURCES} sources", None), ("one source", f"{sources[0].name}/0")):
            times = [1e3 * seconds for seconds in _overview_store.seconds_of(now, engine)]
            for share, milliseconds in (("p50", median(times)), ("p95", quantiles(times, n=20)[-1])):
                what = f"overview, 30 days of {of}, {num_rows:,} rows, {share}"
                bar: Any = {"reference": BAR_OVERVIEW_MS, "reference_name": "the bar", "bar": 1, "better": "lower"}
                yield compare(what, ours=milliseconds, unit="ms", **bar)


def _vacuum() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _beside_prometheus() -> Iterator[Result]:
    from bench import _month, _prometheus
    from bench._postgres import a_postgres_store, table_bytes
    from dashboard.selectors.kept import kept_seconds, retention
    from dashboard.selectors.period import Period
    from dashboard.selectors.tokens import hit_rate_series

    with TemporaryDirectory(prefix="tierscope-bench-") as name, a_postgres_store():
        end = int(time.time()) // _STEP * _STEP
        start = end - _month.DAYS * _month.DAY
        _month.fill(_month.sources_of(NUM_BESIDE), start, dict(kept_seconds(retention())))
        folder, period = Path(name), Period(start, end, _STEP)
        _prometheus.write_blocks(folder, NUM_BESIDE, start)
        with _prometheus.a_prometheus(folder) as client:
            _check_same(hit_rate_series(period)["tiers"], _prometheus.hit_rates(client, start, end, _STEP))
            ours, theirs = [], []
            for _ in range(ROUNDS):  # alternating, so that both see the same machine
                ours.append(_seconds(lambda: hit_rate_series(period)))
                theirs.append(_seconds(lambda: _prometheus.hit_rates(client, start, end, _STEP)))
            beside: Any = {"reference_name": "Prometheus", "better": "lower"}
            what = f"30 days of hit rates, {NUM_BESIDE} sources, p50"
            times: Any = {"ours": 1e3 * median(ours), "reference": 1e3 * median(theirs)}
            yield compare(what, **times, unit="ms", bar=BAR_TIME, **beside)
            disk: Any = {"ours": table_bytes() / 2**20, "reference": _prometheus.disk_bytes(folder) / 2**20}
            yield compare(f"disk, 30 days of {NUM_BESIDE} sources", **disk, unit="MiB", bar=BAR_DISK, **beside)


def _check_same(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> None:
    """To what a float's sum in another order may differ by."""
    assert ours.keys() == theirs.keys(), (ours.keys(), theirs.keys())
    for tier, rates in ours.items():
        pairs = list(zip(rates, theirs[tier], strict=True))
        wrong = [pair for pair in pairs if abs(pair[0] - pair[1]) > 1e-9]
        assert not wrong, f"{len(wrong)} of {len(pairs)} rates of {tier} differ: {wrong[:3]}"


def _seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
