"""Is a slider of the what-if page answered within 50 ms, for a month of a store with a year in it?

Sums are read once until something is recorded. A move takes what the page showed last, also just after a recording;
what the page itself asks for then is told apart, as the first look. The reference is a bare SQL sum over the same rows,
in the same run: what the database alone needs to look at them. The advisor tries some two thousand sizes at each
question; it is asked by a button, not by a slider.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from bench.result import Result

BAR_MS = 50.0
FIRST_BAR_MS = 200.0  # once in ten seconds
ADVICE_BAR_MS = 1_000.0
NUM_BOUNDS = 200  # the most that an engine counts


def run() -> Iterator[Result]:
    import django

    django.setup()
    from django.utils import timezone

    from bench._year import NOW, TIERS, Fact, a_year, tenants
    from bench.charts import bare_sum, quantile
    from dashboard.models import Prices, Source
    from dashboard.selectors import period, tier_costs

    bounds = [str(max(16 + step, int(16 * 2 ** (step / 8)))) for step in range(NUM_BOUNDS - 1)]
    more: list[Fact] = [("reuse_tokens", "", bound) for bound in [*bounds, "+Inf"]]
    more += [("reuse_sample_ppm", "", ""), ("ttft_microseconds", "", "")]
    octaves = [*(str(1 << power) for power in range(10, 29)), "+Inf"]
    more += [("tenant_reuse_tokens", "", f"{bound} {tenant}") for bound in octaves for tenant in tenants()]
    more += [("capacity_bytes", tier, "") for tier in TIERS]
    with a_year(more=more) as num_buckets:
        Source.objects.update(last_ok_at=timezone.now())
        Prices.objects.create(gpu_gib_month=5, cpu_gib_month=2, disk_gib_month=0.1, remote_gib_month=1, gpu_hour=2)
        month = period.last(30 * 86400, now=NOW)
        told = (*tier_costs.METRICS, "reuse_tokens", "reuse_sample_ppm", "ttft", "ttft_microseconds", "computed_tokens")
        bare = bare_sum(month, ",".join(f"'{metric}'" for metric in told), engine="local")
        questions: dict[str, tuple[Callable[[], Any], float]] = {
            f"a slider move, 30 days, {num_buckets:,} buckets": (_asked("what-if", "&cpu=900&disk=4000"), BAR_MS),
            "the first move after a recording, 30 days": (_anew(_asked("what-if", "&cpu=900&move=1")), BAR_MS),
            "the first look, 30 days": (_anew(_asked("what-if", "")), FIRST_BAR_MS),
            "the first look at one tenant, 30 days": (_anew(_asked("what-if", "&tenant=tenant-1")), FIRST_BAR_MS),
            "the advisor, 30 days": (_asked("advice", "&budget=10&seconds=1"), ADVICE_BAR_MS),
        }
        for name, (ask, bar) in questions.items():
            for share in (0.5, 0.95):
                ours, reference = quantile(ask, share), quantile(bare, share)
                yield Result(
                    f"{name}, JSON, p{100 * share:.0f}",
                    ours,
                    reference,
                    "a bare SQL sum",
                    "ms",
                    ours / reference,
                    f"≤ {bar:g} ms",
                    ours <= bar,
                )


def _anew(ask: Callable[[], Any]) -> Callable[[], Any]:
    """As if something had been recorded since."""
    from django.utils import timezone

    from dashboard.models import Source

    def answer() -> Any:
        Source.objects.update(last_ok_at=timezone.now())
        return ask()

    return answer


def _asked(name: str, sizes: str) -> Callable[[], Any]:
    """The view itself, as somebody who is logged in calls it."""
    from django.contrib.auth.models import User
    from django.test import RequestFactory

    from dashboard.views.advice_data import advice_json
    from dashboard.views.what_if_data import what_if_json

    view: Callable[[Any], Any] = {"what-if": what_if_json, "advice": advice_json}[name]
    request = RequestFactory().get(f"/?range=30d&engine=local{sizes}")
    request.user = User(username="bench")

    def answer() -> Any:
        response = view(request)
        assert response.status_code == 200, response.content
        assert b"figure" in response.content, response.content
        return response

    return answer
