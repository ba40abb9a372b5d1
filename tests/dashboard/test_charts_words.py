"""Tiles and numbers in words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts import words
from dashboard.charts.tiles import comparison_note, origins, tiles


def totals(**changes: Any) -> dict[str, Any]:
    before = {
        "prompt_tokens": 1000,
        "computed_tokens": 500,
        "hit_tokens": {"gpu": 400, "cpu": 100},
        "requests": 10,
        "num_looks": 360,
        "ttft_p50": 0.2,
        "ttft_p95": 1.0,
    }
    now = before | {"prompt_tokens": 1200, "hit_tokens": {"gpu": 600, "cpu": 120}, "computed_tokens": 480} | changes
    return {**now, "hit_rate": rate(now), "previous": {**before, "hit_rate": rate(before)}} | changes


def rate(told: dict[str, Any]) -> float | None:
    return sum(told["hit_tokens"].values()) / told["prompt_tokens"] if told["prompt_tokens"] else None


def tile(key: str, counted: dict[str, Any], seconds: int = 3600) -> dict[str, Any]:
    return next(tile for tile in tiles(counted, seconds) if tile["key"] == key)


def test_a_count_says_how_it_changed_and_against_what() -> None:
    change = tile("prompt_tokens", totals())["change"]
    assert (change["amount"], change["text"]) == ("▲ 20 %", "more than in the hour before")
    assert change["verdict"] == "neutral"


def test_a_hit_rate_changes_by_points_and_higher_is_better() -> None:
    found = tile("hit_rate", totals())
    assert found["value"] == "60.0 %"
    assert (found["change"]["amount"], found["change"]["verdict"]) == ("▲ 10.0 points", "better")


def test_a_longer_time_to_first_token_is_worse() -> None:
    change = tile("ttft_p95", totals(ttft_p95=1.5))["change"]
    assert (change["amount"], change["verdict"]) == ("▲ 50 %", "worse")
    assert change["text"].startswith("slower than")


def test_no_prompt_tokens_is_no_hit_rate_rather_than_zero() -> None:
    found = tile("hit_rate", totals(prompt_tokens=0, hit_tokens={"gpu": 0}, computed_tokens=0))
    assert found["value"] == "–"


NOTHING: dict[str, Any] = {
    "prompt_tokens": 0,
    "computed_tokens": 0,
    "hit_tokens": {},
    "hit_rate": None,
    "requests": 0,
    "ttft_p50": None,
    "ttft_p95": None,
}


@pytest.mark.parametrize(
    ("counted", "sentence"),
    [
        (totals(), ""),
        (totals(previous=None), "The hour before was not observed: there is nothing to compare with."),
        (totals(previous=NOTHING), "Nothing was asked in the hour before: there is nothing to compare with."),
        (NOTHING | {"previous": totals()}, ""),
        (NOTHING | {"previous": None}, ""),
    ],
)
def test_that_there_is_nothing_to_compare_with_is_said_once(counted: dict[str, Any], sentence: str) -> None:
    assert comparison_note(counted, 3600) == sentence
    if sentence:
        assert {tile["change"]["text"] for tile in tiles(counted, 3600)} == {""}


def test_one_number_that_was_not_there_before_is_said_beside_it() -> None:
    before = totals()["previous"] | {"computed_tokens": 0}
    assert tile("computed_tokens", totals(previous=before))["change"]["text"] == "none in the hour before"


def test_a_longer_period_before_is_named_by_its_length() -> None:
    assert comparison_note(totals(previous=None), 900).startswith("The 15 minutes before were not observed")


@pytest.mark.parametrize(
    ("now", "before", "sentence"),
    [
        (360, 90, "Only 25.0 % as much was observed in the hour before: the two are not compared."),
        (90, 360, "Only 25.0 % as much was observed as in the hour before: the two are not compared."),
        (350, 360, ""),
    ],
)
def test_periods_that_were_not_equally_observed_are_not_compared(now: int, before: int, sentence: str) -> None:
    counted = totals(num_looks=now, previous=totals()["previous"] | {"num_looks": before})
    assert comparison_note(counted, 3600) == sentence
    assert (tile("requests", counted)["change"]["text"] == "") == bool(sentence)


def test_what_no_engine_tells_is_a_dash_and_not_a_zero() -> None:
    found = tile("requests", totals(requests=None))
    assert (found["value"], found["exact"]) == ("–", "not told by these engines")


def test_a_multiple_is_said_as_a_multiple() -> None:
    assert tile("requests", totals(requests=50))["change"]["amount"] == "▲ 5 ×"


def test_nothing_changed_reads_as_such() -> None:
    assert tile("requests", totals())["change"]["text"] == "as in the hour before"


def test_origins_add_up_to_all_prompt_tokens_fastest_first() -> None:
    found = origins(totals())
    assert [origin["origin"] for origin in found] == ["gpu", "cpu", "computed"]
    assert sum(origin["tokens"] for origin in found) == 1200
    assert sum(origin["share"] for origin in found) == pytest.approx(1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300, "5 minutes"),
        (3600, "1 hour"),
        (86400, "1 day"),
        (5400, "90 minutes"),
        (2_592_000, "30 days"),
        (0, "0 seconds"),
    ],
)
def test_spans_use_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert words.span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0.0834, "83.4 ms"), (1.24, "1.24 s"), (112.3, "112 s"), (0.9999, "1 s")]
)
def test_durations_have_three_digits(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def test_nearly_all_and_nearly_nothing_do_not_read_as_all_or_nothing() -> None:
    assert (words.percent(0.9999), words.percent(0.0001)) == ("> 99.9 %", "< 0.1 %")
    assert (words.percent(1), words.percent(0)) == ("100.0 %", "0.0 %")


@given(st.integers(0, 10**16))
def test_any_count_has_words(number: int) -> None:
    assert 0 < len(words.count(number)) <= 10


@given(st.floats(0, 10**10, allow_nan=False))
def test_any_age_has_words(seconds: float) -> None:
    assert words.ago(seconds).endswith(" ago")


def test_one_is_no_plural() -> None:
    assert [words.counted(number, "block") for number in (0, 1, 1200)] == ["0 blocks", "1 block", "1,200 blocks"]


def test_a_tier_without_hits_is_a_part_of_zero_and_nothing_unattributed_is_none() -> None:
    parts = origins(totals(hit_tokens={"gpu": 720, "disk": 0, "unattributed": 0}))
    assert [(part["label"], part["tokens"]) for part in parts] == [("gpu", 720), ("disk", 0), ("computed", 480)]
