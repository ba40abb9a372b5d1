"""Before and after a change: the same length on both sides, never over another change."""

import time
from datetime import UTC, datetime

import pytest

from dashboard.charts.changes import change_rows
from dashboard.models import TierChange
from dashboard.selectors.comparisons import MAX_CHANGES, Comparison, before_and_after
from dashboard.selectors.period import last
from tests.dashboard.seeded import SeededEngine

pytestmark = pytest.mark.django_db
NOW = float(int(time.time()) // 10 * 10)


def changed(*ages: int) -> None:
    for age in ages:
        at = datetime.fromtimestamp(NOW - age, UTC)
        TierChange.objects.create(
            engine="local", cache_tier="cpu", action="resize", old_value="1 GiB", new_value="2 GiB", at=at
        )


def compared() -> list[Comparison]:
    return before_and_after(last(3600, now=NOW), now=NOW)


def test_hits_before_and_after_are_counted_apart() -> None:
    changed(600)
    engine = SeededEngine()
    for age in (900, 700):
        engine.scrape(NOW - age, {}, {})
        engine.request(NOW - age, {"gpu": 20}, 80, ttft=1.0)
    for age in (500, 300, 100):
        engine.scrape(NOW - age, {}, {})
        engine.request(NOW - age, {"gpu": 60}, 40, ttft=0.2)
    engine.store(NOW)
    (only,) = compared()
    assert only.seconds == 600
    assert only.before is not None
    assert only.after is not None
    assert (only.before["prompt_tokens"], only.after["prompt_tokens"]) == (200, 300)
    (row,) = change_rows([only])
    assert row["hit_rate"] == {"before": "20.0 %", "after": "60.0 %", "verdict": "better"}
    assert row["ttft"]["verdict"] == "better"
    assert (row["window"], row["note"]) == ("10 min", "")


def test_neither_side_reaches_over_another_change() -> None:
    changed(1000, 800, 100)
    assert [each.seconds for each in compared()] == [100, 200, 200]


def test_a_change_of_a_moment_ago_has_nothing_to_compare_yet() -> None:
    changed(30)
    (only,) = compared()
    assert only.seconds is None
    assert "nothing to compare yet" in change_rows([only])[0]["note"]


def test_a_time_before_that_was_not_observed_is_said_to_be_so() -> None:
    changed(300)
    engine = SeededEngine()
    engine.scrape(NOW - 100, {}, {})
    engine.request(NOW - 100, {"gpu": 60}, 40, ttft=0.2)
    engine.store(NOW)
    assert change_rows(compared())[0]["note"] == "The time before was not observed."


def test_only_the_newest_changes_are_compared_newest_first() -> None:
    changed(*range(3000, 0, -300))
    found = compared()
    assert len(found) == MAX_CHANGES
    assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)
    assert found[0].at == NOW - 300


def test_without_a_change_there_is_no_row() -> None:
    assert compared() == []
