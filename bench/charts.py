"""Does a chart of 30 days × 4 tiers × 3 engines come within 100 ms from SQLite with a year in the store?

Measured twice: the selector's data, and the whole JSON that a page gets (`/api/charts/NAME.json?range=30d`).

The reference is a bare SQL sum over the same rows, in the same run: what the database alone needs to look at them.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result

BAR_MS = 100.0
ROUNDS = 25
_ADDRESSES = {
    "tokens": "tokens",
    "hit rate": "hit-rate",
    "residency": "residency",
    "ttft": "ttft",
    "copied bytes": "bandwidth",
    "load times": "load-times",
    "failures": "failures",
    "skipped loads": "skipped",
    "tokens by tenant": "tenant-tokens",
    "hit rate by tenant": "tenant-hit-rate",
}


def run() -> Iterator[Result]:
    import django

    django.setup()
    from bench._year import NOW, a_year
    from dashboard.selectors import latency, period, residency, tenants, tier_costs, tier_series, tokens, totals

    with a_year() as num_buckets:
        month = period.last(30 * 86400, now=NOW)
        tenant_metrics = ",".join(f"'{metric}'" for metric in tenants.METRICS)
        charts: dict[str, tuple[Callable[[], Any], str]] = {
            "tokens": (lambda: tokens.token_series(month), "'scrapes','prompt_tokens','computed_tokens','hit_tokens'"),
            "hit rate": (
                lambda: tokens.hit_rate_series(month),
                "'scrapes','prompt_tokens','computed_tokens','hit_tokens'",
            ),
            "residency": (lambda: residency.residency_series(month), "'resident_tokens','capacity_tokens'"),
            "ttft": (lambda: latency.ttft_series(month), "'ttft'"),
            "totals": (
                lambda: totals.totals(month),
                "'scrapes','prompt_tokens','computed_tokens','hit_tokens','generated_tokens','requests','ttft'",
            ),
            "copied bytes": (lambda: tier_series.copied_bytes_series(month), "'scrapes','loaded_bytes','stored_bytes'"),
            "load times": (lambda: tier_series.load_times_series(month), "'load_times'"),
            "failures": (lambda: tier_series.failures_series(month), "'scrapes','tier_errors'"),
            "skipped loads": (lambda: tier_series.skipped_series(month), "'scrapes','load_skipped_tokens'"),
            "tokens by tenant": (lambda: tenants.tenant_series(month), tenant_metrics),
            "hit rate by tenant": (lambda: tenants.tenant_series(month), tenant_metrics),
            "tenant totals": (lambda: tenants.tenant_totals(month), tenant_metrics),
            "tier costs": (lambda: tier_costs.tier_costs(month), ",".join(f"'{m}'" for m in tier_costs.METRICS)),
        }
        for name, (draw, metrics) in charts.items():
            yield _compare(f"30 days of {name}, {num_buckets:,} buckets, p50", draw, bare_sum(month, metrics), 0.5)
            yield _compare(f"30 days of {name}, p95", draw, bare_sum(month, metrics), 0.95)
            if name in _ADDRESSES:
                yield _compare(f"30 days of {name}, JSON, p95", _view(name), bare_sum(month, metrics), 0.95)
        costs = charts["tier costs"][1]
        yield _compare("30 days of the tiers page's cards, JSON, p95", _cards(), bare_sum(month, costs), 0.95)
        yield _compare("30 days of the table of tenants, JSON, p95", _tenants(), bare_sum(month, tenant_metrics), 0.95)
        yield _compare("30 days of the tiles, JSON, p95", _tiles(), bare_sum(month, charts["totals"][1]), 0.95)


def _view(name: str) -> Callable[[], Any]:
    """The view itself, as somebody who is logged in calls it."""
    from dashboard.views.chart_data import chart_json

    return asked(lambda request: chart_json(request, name=_ADDRESSES[name]))


def _cards() -> Callable[[], Any]:
    from dashboard.views.tiers_data import tiers_json

    return asked(tiers_json)


def _tenants() -> Callable[[], Any]:
    from dashboard.views.chart_data import tenants_json

    return asked(tenants_json)


def _tiles() -> Callable[[], Any]:
    from dashboard.views.chart_data import tiles_json

    return asked(tiles_json)


def asked(view: Callable[[Any], Any], range_name: str = "30d", **filters: str) -> Callable[[], Any]:
    from django.contrib.auth.models import User
    from django.test import RequestFactory

    request = RequestFactory().get("/", {"range": range_name, **filters})
    request.user = User(username="bench")

    def answer() -> Any:
        response = view(request)
        assert response.status_code == 200, response.content
        return response

    return answer


def bare_sum(period: Any, metrics: str, engine: str = "") -> Callable[[], Any]:
    from django.db import connection

    sql = (
        "SELECT SUM(value) FROM bench_rows WHERE series_id IN "  # noqa: S608 (constants of this file)
        f"(SELECT id FROM dashboard_series WHERE metric IN ({metrics}) AND (engine = %s OR %s = '')) "
        "AND resolution = %s AND start_at >= %s AND start_at < %s"
    )

    def query() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(sql, [engine, engine, period.resolution, period.start, period.end])
            return cursor.fetchone()

    return query


def _compare(name: str, ours: Callable[[], Any], reference: Callable[[], Any], share: float) -> Result:
    milliseconds, reference_ms = quantile(ours, share), quantile(reference, share)
    ratio = milliseconds / reference_ms
    is_ok = milliseconds <= BAR_MS
    return Result(name, milliseconds, reference_ms, "a bare SQL sum", "ms", ratio, f"≤ {BAR_MS:g} ms", is_ok)


def quantile(call: Callable[[], Any], share: float) -> float:
    call()
    times = sorted(_milliseconds(call) for _ in range(ROUNDS))
    return statistics.quantiles(times, n=20, method="inclusive")[round(share * 20) - 1]


def _milliseconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
