"""Alerts of sources that are read rarely, and of stores that keep minutes for less than a week."""

import pytest

from dashboard.models import Retention, Source
from dashboard.selectors.alert_conditions import Finding, findings
from dashboard.selectors.newest import newest_readings
from dashboard.services.retention import expire
from tests.dashboard.seeded import Metric, SeededEngine
from tests.dashboard.told import moment

pytestmark = pytest.mark.django_db

NOW = 1_800_000_000  # a whole hour
HOUR, WEEK = 3_600, 604_800


def stored(engine: SeededEngine, interval_seconds: int = 10) -> None:
    engine.store(NOW)
    Source.objects.filter(name=engine.source_name).update(interval_seconds=interval_seconds)


def found(kind: str, threshold: float | None = None, now: float = NOW) -> list[Finding]:
    return findings(kind, threshold, now)


def thrashing(every: int) -> SeededEngine:
    """Read four times, each time with what happened since the last."""
    engine = SeededEngine("a")
    for number in range(1, 5):
        at = NOW - number * every + every // 2
        engine.add(at, Metric.PROMPT_TOKENS, 1_000)
        engine.add(at, Metric.MISSED_TOKENS, 900, tier="cpu")
        engine.add(at, Metric.USED_BYTES, 99, tier="cpu")
        engine.add(at, Metric.CAPACITY_BYTES, 100, tier="cpu")
        engine.add(at, Metric.UP, 0, tier="remote")
    return engine


@pytest.mark.parametrize("every", [10, 900, HOUR])
def test_what_a_source_told_holds_until_it_is_read_again_however_rarely_that_is(every: int) -> None:
    stored(thrashing(every), every)
    for now in range(NOW, NOW + every, max(1, every // 7)):
        assert [each.labels["engine"] for each in found("thrashing", 0.05, now)] == ["a"]
        assert [each.labels["engine"] for each in found("remote_down", None, now)] == ["a"]


def test_what_a_source_told_three_intervals_ago_is_not_now() -> None:
    stored(thrashing(900), 900)
    assert found("thrashing", 0.05, NOW + 4 * 900) == []
    assert found("remote_down", None, NOW + 4 * 900) == []


def test_a_source_that_is_read_rarely_makes_no_other_one_s_old_reading_new() -> None:
    stored(thrashing(HOUR), HOUR)
    often = SeededEngine("b", source_name="often")
    often.add(NOW - 2_000, Metric.UP, 0, tier="remote")
    stored(often)
    assert list(newest_readings((Metric.UP,), NOW)) == [("a", "remote")]


@pytest.mark.parametrize("minutes_days", [1, 14])
@pytest.mark.parametrize("seconds_into_the_hour", [0, 1_740, 1_860])
def test_a_hit_rate_that_fell_is_seen_also_where_minutes_are_kept_for_less_than_a_week(
    minutes_days: int, seconds_into_the_hour: int
) -> None:
    now = NOW + seconds_into_the_hour
    engine = SeededEngine("a")
    for start, hits in ((now - WEEK, 90), (now, 10)):
        for at in range(start - 2 * HOUR, start, 600):
            engine.add(at, Metric.PROMPT_TOKENS, 100)
            engine.add(at, Metric.HIT_TOKENS, hits, tier="gpu")
    stored(engine)
    Retention.objects.create(minutes_days=minutes_days)
    expire(now=moment(now))
    (finding,) = found("hit_rate_fell", 0.7, now)
    assert finding.value == 0.1
