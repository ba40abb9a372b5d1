"""What does recording one scrape of three busy engines cost, against the bare upserts that it ends in?

The bar is a twentieth of the five seconds between two looks at the embedded engines.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result

BAR_MS = 250.0
ROUNDS = 30


def run() -> Iterator[Result]:
    import django

    django.setup()
    from bench._year import a_year
    from dashboard.models import Source

    with a_year() as num_buckets:
        source = Source.objects.get()
        times, num_rows = _recordings(source)
        bare = statistics.median(_milliseconds(lambda: _bare_upserts(num_rows)) for _ in range(ROUNDS))
    ours = statistics.median(times)
    name = f"recording 3 engines beside {num_buckets:,} buckets, p50"
    yield Result(name, ours, bare, "bare upserts", "ms", ours / bare, f"≤ {BAR_MS:g} ms", ours <= BAR_MS)


def _recordings(source: Any) -> tuple[list[float], int]:
    """Each round every counter of every engine moved: the worst case."""
    from django.db import connection, transaction

    from bench._year import ENGINES, NOW
    from dashboard.services.ledger import Ledger
    from dashboard.sources.detection import read
    from dashboard.sources.reading import readings

    def one(index: int) -> None:
        at = datetime.fromtimestamp(NOW + 5 * index, tz=UTC)
        adapted = [read(_text(engine, index), "tierscope") for engine in ENGINES]
        found = [readings(each, at=at, prefix="", boot_id="bench", starts_from_zero=True) for each in adapted]
        ledger = Ledger([(source, reading) for each in found for reading in each])
        if missing := ledger.missing():
            ledger.create(missing)
        ledger.take()
        with transaction.atomic():
            ledger.store()

    times = [_milliseconds(partial(one, index)) for index in range(ROUNDS)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT COUNT(DISTINCT series_id) FROM dashboard_head)"
            " + (SELECT COUNT(DISTINCT series_id) FROM dashboard_totalhead)"
        )
        return times, int(cursor.fetchone()[0])


def _text(engine: str, index: int) -> str:
    from bench._year import LES, TIERS, tenants

    labels = f'engine="{engine}",model_name="m"'
    names = ("prompt_tokens", "computed_prompt_tokens", "generated_tokens", "preemptions")
    lines = [f"tierscope_{name}_total{{{labels}}} {100 * index + 1}" for name in names]
    for tier in TIERS:
        of_tier = f'{labels},cache_tier="{tier}"'
        told = ["cached_prompt_tokens_total", "tier_loaded_bytes_total", "tier_stored_bytes_total"]
        told += ["tier_resident_tokens", "tier_capacity_tokens", "tier_used_bytes", "tier_capacity_bytes"]
        lines += [f"tierscope_{name}{{{of_tier}}} {25 * index + 1}" for name in told]
        lines += [
            f'tierscope_time_to_first_token_seconds_bucket{{{of_tier},le="{bound}"}} {(place + 1) * index}'
            for place, bound in enumerate(LES)
        ]
    for tenant in tenants():
        of_tenant = f'{labels},tenant="{tenant}"'
        lines += [f"tierscope_tenant_{name}_total{{{of_tenant}}} {100 * index + 1}" for name in names[:2]]
        hits = "tierscope_tenant_cached_prompt_tokens_total"
        lines += [f'{hits}{{{of_tenant},cache_tier="{tier}"}} {25 * index + 1}' for tier in TIERS]
    return "\n".join(lines) + "\n"


def _bare_upserts(num_rows: int) -> None:
    from django.db import connection, transaction

    sql = (
        "INSERT INTO dashboard_head (series_id, start_at, value, num_samples) VALUES (%s, 0, 1, 1) "
        "ON CONFLICT (series_id, start_at) DO UPDATE SET value = value + 1"
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(sql, [(1 + row % 100,) for row in range(num_rows)])


def _milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
