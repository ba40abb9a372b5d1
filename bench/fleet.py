"""Is a fleet of 500 engines on screen within a second? The server's part, for an hour and for a month: the JSON of the
table of engines, of that of models, of one engine's page among 500, and of all of them in two periods side by side.

Each engine has four tiers and a bucket in every minute or hour of the period, and in every day. The reference is a bare
SQL sum over the rows of the lines' resolution in the same run.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result

NUM_ENGINES = 500
BAR_MS = 1000.0
_TIERS = ("gpu", "cpu", "disk", "remote")
_FACTS = [("scrapes", ""), ("prompt_tokens", ""), ("computed_tokens", ""), *(("hit_tokens", tier) for tier in _TIERS)]
_LENGTHS = {"1h": (60, 90), "30d": (3_600, 31 * 24)}  # resolution, buckets


def run() -> Iterator[Result]:
    import django

    django.setup()
    from bench._year import a_store
    from bench.charts import asked, bare_sum, quantile
    from dashboard.selectors import period
    from dashboard.selectors.fleet import sparks
    from dashboard.views.compare_data import compare_json
    from dashboard.views.engine_data import engine_json
    from dashboard.views.fleet_data import fleet_json, models_json

    views = {
        "engines": (fleet_json, {}),
        "models": (models_json, {}),
        "one engine's page": (engine_json, {"engine": "gpu-7/0"}),
        "two periods side by side": (compare_json, {}),
    }
    for name, (resolution, num_buckets) in _LENGTHS.items():
        with a_store():
            num_rows = _fill(resolution, num_buckets)
            seconds = {"1h": 3_600, "30d": 2_592_000}[name]
            steps = sparks(period.last(seconds, now=time.time()))
            reference = quantile(bare_sum(steps, "'prompt_tokens','computed_tokens'"), 0.95)
            for what, (view, filters) in views.items():
                ours = quantile(asked(view, name, **filters), 0.95)
                yield Result(
                    f"{what} of {NUM_ENGINES} engines, {name}, {num_rows:,} buckets, JSON, p95",
                    ours,
                    reference,
                    "a bare SQL sum",
                    "ms",
                    ours / reference,
                    f"≤ {BAR_MS:g} ms",
                    ours <= BAR_MS,
                )


def _fill(resolution: int, num_buckets: int) -> int:
    """Buckets up to now, of that resolution, and of days for what is read of whole days."""
    from django.db import transaction

    from bench._packed import store
    from bench._year import kept_plain
    from dashboard.models import Series, Source
    from dashboard.services.totals import assign

    source = Source.objects.create(name="fleet", kind="vllm")
    facts: list[dict[str, Any]] = [
        {"engine": f"gpu-{number}/0", "model_name": f"m-{number % 10}", "metric": metric, "cache_tier": tier}
        for number in range(NUM_ENGINES)
        for metric, tier in _FACTS
    ]
    series = Series.objects.bulk_create(assign(Series(source=source, **fact) for fact in facts))
    now = int(time.time())
    starts = [
        (each, now // each * each - each * back)
        for each, most in {resolution: num_buckets, 86_400: 32}.items()
        for back in range(most)
    ]
    with transaction.atomic():
        return store(kept_plain((one.pk, each, start, 100, 1) for one in series for each, start in starts))
