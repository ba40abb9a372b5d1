"""Several workers look for alerts, and tell of them, at once: on both databases each alert is one, told once."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from dashboard.models import Alert, AlertNotice, Source, Webhook
from dashboard.services.alerts import ensure_rules, evaluate
from dashboard.services.webhooks import tell_due

pytestmark = pytest.mark.usefixtures("store")

T0 = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
NUM_WORKERS = 4


def at_once(call: Callable[[], Any]) -> list[Any]:
    together = Barrier(NUM_WORKERS)

    def work(_: int) -> Any:
        try:
            together.wait(10)
            return call()
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(NUM_WORKERS) as pool:
        return list(pool.map(work, range(NUM_WORKERS)))


def test_an_alert_begins_fires_and_ends_once_whoever_looks() -> None:
    for number in range(3):
        Source.objects.create(name=f"gpu-{number}", kind="vllm", last_ok_at=T0 - timedelta(hours=1), last_scraped_at=T0)
    Webhook.objects.create(name="pager", url="http://pager.invalid/")
    ensure_rules()
    for minutes, expected in ((0, 0), (5, 3)):
        changed = at_once(lambda now=T0 + timedelta(minutes=minutes): evaluate(now))  # type: ignore[misc]
        assert sum(len(each) for each in changed) == expected
        assert Alert.objects.count() == 3
    assert AlertNotice.objects.count() == 1
    Source.objects.update(is_enabled=False)
    ended = at_once(lambda: evaluate(T0 + timedelta(minutes=6)))
    assert sum(len(each) for each in ended) == 3

    told: list[str] = []

    def send(webhook: Webhook, payload: Mapping[str, Any]) -> None:
        told.append(payload["status"])

    numbers = at_once(lambda: tell_due(lambda: T0 + timedelta(minutes=7), send))
    assert sum(numbers) == 2
    assert told == ["firing", "resolved"]
    assert not AlertNotice.objects.exists()
