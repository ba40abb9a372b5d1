"""Run inside the product's own process (`manage.py shell -c`): fills its database with traffic that is known."""

import sys
import time
from dataclasses import replace
from datetime import UTC, datetime

from django.contrib.auth.models import User

from dashboard import valkey
from dashboard.models import (
    Alert,
    AlertRule,
    Chunk,
    Head,
    Prediction,
    Prices,
    Replay,
    RequestLog,
    Series,
    Source,
    TierChange,
    TierSetting,
    TotalChunk,
    TotalHead,
    TotalSeries,
)
from dashboard.services import tiers
from dashboard.services.replays import remove
from dashboard.trace_folder import folder
from tests.dashboard import replaying as replays
from tests.dashboard.seeded import SeededEngine, lively, seed_requests


def nothing() -> None:
    """An empty store."""
    buckets = (Head, Chunk, TotalHead, TotalChunk)
    for model in (*buckets, Series, TotalSeries, RequestLog, TierChange, Source, Prediction, Prices, Alert):
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


def prices() -> None:
    """Round ones; a GiB costs so much because the scripted engine has thousands of bytes."""
    Prices.objects.create(pk=1, gpu_gib_month=500_000, cpu_gib_month=100_000, disk_gib_month=10_000, gpu_hour=2)


def first_sizes() -> None:
    """The scripted engine's tiers as it starts with them, whatever a test has made of them."""
    for setting in TierSetting.objects.filter(engine="local"):
        seen = tiers.Wish.of(setting)
        wish = replace(seen, desired_bytes={"gpu": 1_000, "cpu": 2_000, "disk": 3_000}[setting.cache_tier])
        tiers.change(setting_id=setting.pk, seen=seen, wish=wish, author=None, now=datetime.now(UTC))


def a_watched_vllm() -> None:
    """Beside our own engine: it tells prompt tokens and no curve."""
    Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7.invalid/metrics", is_enabled=False)
    now = time.time()
    engine = SeededEngine(engine="gpu-7/0", source_name="gpu-7")
    engine.scrape(now - 60, {}, {})
    engine.add(now - 60, "prompt_tokens", 50_000)
    engine.store(now)


def one_more_request() -> None:
    """1,234,567 prompt tokens more, recorded at this moment, and told to whoever listens."""
    engine = SeededEngine(engine="second")
    now = time.time()
    engine.scrape(now, {}, {})
    engine.request(now, {"gpu": 1_000_000}, 234_567, ttft=0.5)
    engine.store(now)
    valkey.client().publish(valkey.TICK_CHANNEL, "1")


def an_alert() -> None:
    """That the watched engine's source cannot be read fires; told to whoever listens."""
    rule, _ = AlertRule.objects.get_or_create(kind="source_stale", defaults={"for_minutes": 5})
    now = datetime.now(UTC)
    told = {"labels": {"source": "gpu-7"}, "fingerprint": "f", "summary": "gpu-7 could not be read lately."}
    Alert.objects.create(rule=rule, state="firing", pending_at=now, firing_at=now, **told)
    valkey.client().publish(valkey.TICK_CHANNEL, "1")


def an_hour_that_ended_two_hours_ago() -> None:
    """A source that nobody could read since."""
    nothing()
    then = time.time() - 7_200
    lively(then).store(then)


def two_replays() -> None:
    """Of one trace with gpu tiers of 16 and of 90 blocks, both done, beside an hour of live traffic."""
    for row in Replay.objects.all():
        remove(row)
    an_hour()
    for old in folder().iterdir():
        old.unlink()
    replays.write_trace()
    for name, blocks in (("small", "16"), ("large", "90")):
        now = datetime.now(UTC)
        replays.run(
            replays.make(name, tiers=replays.wishes({"gpu": blocks, "cpu": "30"}), now=now), replays.Ticking(now)
        )


def go_on_with_replays() -> None:
    """As the worker does it."""
    for row in Replay.objects.filter(state="waiting"):
        replays.run(row, replays.Ticking(datetime.now(UTC)))


def serve() -> None:
    """Calls the functions that standard input names, one a line, and says each name once its function is done."""
    for line in sys.stdin:
        globals()[line.strip()]()
        print(line, end="", flush=True)
