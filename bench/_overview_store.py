"""Everything that the overview asks of the store for 30 days, timed together. Knows no bar."""

import time

from bench._month import DAY, DAYS
from dashboard.selectors import latency, present, residency, tenants, tokens, totals
from dashboard.selectors.period import last

ROUNDS = 21


def seconds_of(now: float, engine: str | None) -> list[float]:
    """Of each round, sorted."""
    period = last(DAYS * DAY, now=now)
    asked = (
        totals.totals,
        tokens.token_series,
        tokens.hit_rate_series,
        latency.ttft_series,
        residency.residency_series,
        tenants.tenant_series,
        tenants.tenant_totals,
    )

    def ask() -> float:
        began = time.perf_counter()
        for question in asked:
            question(period, engine=engine)
        present.has_traffic()
        return time.perf_counter() - began

    ask()
    return sorted(ask() for _ in range(ROUNDS))
