"""Before and after a change: the same length on both sides, never over another change."""

import time
from datetime import UTC, datetime

import pytest

from dashboard.charts.changes import change_rows
from dashboard.models import TierChange
from dashboard.selectors.comparisons import MAX_CHANGES, Comparison, before_and_after
from dashboard.selectors.period import between, last
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


@pytest.mark.parametrize(
    ("ages", "sentences"),
    [
        ([30], ["Less than a minute old: there is nothing to compare yet."]),
        (
            [330, 300],
            [
                "Another change came less than a minute before it: what each did cannot be told apart.",
                "Another change came less than a minute after it: what each did cannot be told apart.",
            ],
        ),
        (
            [330, 300, 270],
            [
                "Another change came less than a minute before it: what each did cannot be told apart.",
                "Other changes came less than a minute before and after it: what each did cannot be told apart.",
                "Another change came less than a minute after it: what each did cannot be told apart.",
            ],
        ),
        (
            [50, 20],
            [
                "Another change came less than a minute before it: what each did cannot be told apart.",
                "Another change came less than a minute after it: what each did cannot be told apart.",
            ],
        ),
    ],
)
def test_why_a_change_cannot_be_compared_is_said_as_it_is(ages: list[int], sentences: list[str]) -> None:
    changed(*ages)
    found = compared()
    assert [each.seconds for each in found] == [None] * len(ages)
    assert [row["note"] for row in change_rows(found)] == sentences


@pytest.mark.parametrize(
    ("seen", "asked", "sentence"),
    [
        ([100], [100], "The 5 min before it were not observed."),
        ([400], [400], "The 5 min after it were not observed."),
        ([], [], "The 5 min before and after it were not observed."),
        ([400, 100], [100], "Nothing was asked in the 5 min before it."),
        ([400, 100], [400], "Nothing was asked in the 5 min after it."),
        ([400, 100], [], "Nothing was asked in the 5 min before and after it."),
        ([400, 100], [400, 100], ""),
    ],
)
def test_a_side_without_numbers_is_named_and_so_is_why(seen: list[int], asked: list[int], sentence: str) -> None:
    changed(300)
    engine = SeededEngine()
    for age in seen:
        engine.scrape(NOW - age, {}, {})
    for age in asked:
        engine.request(NOW - age, {"gpu": 60}, 40, ttft=0.2)
    engine.store(NOW)
    assert change_rows(compared())[0]["note"] == sentence


def test_a_change_just_outside_the_period_is_not_reached_over_either() -> None:
    changed(400, 280)
    (only,) = before_and_after(last(300, now=NOW), now=NOW)
    assert only.seconds == 120


def test_a_change_after_a_period_in_the_past_ends_what_is_compared() -> None:
    changed(2000, 1700)
    (only,) = before_and_after(between(NOW - 2400, NOW - 1800, now=NOW), now=NOW)
    assert only.seconds == 300


def test_only_the_newest_changes_are_compared_newest_first() -> None:
    changed(*range(3000, 0, -300))
    found = compared()
    assert len(found) == MAX_CHANGES
    assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)
    assert found[0].at == NOW - 300


def test_without_a_change_there_is_no_row() -> None:
    assert compared() == []
