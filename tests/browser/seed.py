"""Run inside the product's own process (`manage.py shell -c`): fills its database with traffic that is known."""

import time
from datetime import UTC, datetime

from django.contrib.auth.models import User

from dashboard import valkey
from dashboard.models import Bucket, RequestLog, Series, Source, TierChange
from tests.dashboard.seeded import SeededEngine, lively, seed_requests


def nothing() -> None:
    """An empty store."""
    for model in (Bucket, Series, RequestLog, TierChange, Source):
        model.objects.all().delete()


def an_hour() -> None:
    """An hour of traffic, a stretch not observed, a change of a tier, 120 requests."""
    nothing()
    now = time.time()
    lively(now, gap=(1500, 1400)).store(now)
    seed_requests(120)
    author = User.objects.get(username="admin")
    at = datetime.fromtimestamp(now - 300, UTC)
    TierChange.objects.create(
        engine="local", cache_tier="cpu", action="resize", old_value="96 MiB", new_value="192 MiB", author=author, at=at
    )


def one_more_request() -> None:
    """1,234,567 prompt tokens more, recorded at this moment, and told to whoever listens."""
    engine = SeededEngine(engine="second")
    now = time.time()
    engine.scrape(now, {}, {})
    engine.request(now, {"gpu": 1_000_000}, 234_567, ttft=0.5)
    engine.store(now)
    valkey.client().publish(valkey.TICK_CHANNEL, "1")


def an_hour_that_ended_two_hours_ago() -> None:
    """A source that nobody could read since."""
    nothing()
    then = time.time() - 7_200
    lively(then).store(then)
