"""Two sides: engines or periods in numbers, their differences, and why there sometimes are none."""

import csv
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.selectors.period import PeriodError, twins
from tests.dashboard.seeded import SeededEngine, counted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
HOUR, DAY, WEEK = 3_600, 86_400, 604_800


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


def told(browser: Client, query: str) -> dict[str, Any]:
    answer = browser.get(f"/api/compare.json?{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def row(answer: dict[str, Any], name: str) -> tuple[str, str, str]:
    found = next(each for each in answer["rows"] if each["name"] == name)
    return (*(cell["text"] for cell in found["cells"]), found["difference"]["text"])


def observed(engine: str, *, now: float, ages: list[int], gpu: int, computed: int, disk: int = 0) -> None:
    """Looked at for 14 minutes from each of these ages on, with so many tokens in the middle."""
    seen = SeededEngine(engine=engine, source_name=engine.partition("/")[0])
    for age in ages:
        for second in range(0, 840, 10):
            seen.scrape(now - age + second, {}, {})
        seen.request(now - age + 420, {"gpu": gpu, "disk": disk}, computed, ttft=0.1)
    seen.store(now)


@pytest.fixture
def now() -> float:
    """So that each quarter of an hour ends with a step."""
    return time.time() // 10 * 10 - 1


def test_a_side_that_nobody_looked_at_has_no_numbers_and_short_periods_are_in_minutes(
    browser: Client, now: float
) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    answer = told(browser, "range=15m&engine=a/0")
    assert row(answer, "Prompt tokens") == ("100", "–", "–")
    assert answer["overlay"]["layout"]["xaxis"]["title"]["text"] == "minutes into the period"


def test_two_engines_stand_beside_each_other_with_their_difference_in_points(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    observed("b/0", now=now, ages=[850], gpu=20, disk=16, computed=64)
    answer = told(browser, "range=15m&engine=a/0&other=b/0")
    assert (answer["names"], answer["note"]) == (["a/0", "b/0"], "")
    assert row(answer, "Hit rate") == ("60.0 %", "36.0 %", "▲ 24.0 points")
    assert row(answer, "from disk") == ("0.0 %", "16.0 %", "▼ 16.0 points")
    assert row(answer, "Prompt tokens") == ("100", "100", "same")
    assert answer["periods"][0] == answer["periods"][1]


def test_the_same_engine_stands_beside_itself_a_week_before(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850, 850 + WEEK], gpu=60, computed=40)
    answer = told(browser, "range=15m&engine=a/0&against=week")
    assert row(answer, "Hit rate") == ("60.0 %", "60.0 %", "same")
    left, right = answer["queries"]
    assert (left["start"] - right["start"], left["end"] - right["end"]) == (WEEK, WEEK)


def test_each_side_is_what_the_totals_the_read_api_and_the_file_say(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    observed("b/0", now=now, ages=[850, 1750], gpu=20, disk=16, computed=64)
    asked = f"start={int(now) - 900}&end={int(now)}&engine=a/0&other=b/0"
    answer = told(browser, asked)
    file = list(csv.DictReader(browser.get(f"/api/charts/compare.csv?{asked}").content.decode().splitlines()))
    filed = {each["number"]: (each["left"], each["right"]) for each in file}
    for index, query in enumerate(answer["queries"]):
        api = browser.get(f"/api/v1/totals?from={query['start']}&to={query['end']}&engine={query['engine']}").json()
        assert row(answer, "Prompt tokens")[index] == str(api["prompt_tokens"])
        assert float(filed["prompt_tokens"][index]) == api["prompt_tokens"]
        assert float(filed["hit_rate"][index]) == api["hit_rate"]
        assert float(filed["ttft_p95"][index]) == api["ttft_p95"]
        for tier, tokens in api["hit_tokens"].items():
            assert float(filed[f"{tier}_hit_tokens"][index]) == tokens


def test_both_charts_have_the_axis_of_the_taller_one(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    observed("b/0", now=now, ages=[850], gpu=2_000, computed=64)
    answer = told(browser, "range=15m&engine=a/0&other=b/0")
    for pair in answer["figures"].values():
        left, right = (figure["layout"]["yaxis"]["range"] for figure in pair)
        assert left == right
    tallest = max(
        sum(ys) for ys in zip(*(t["y"] for t in answer["figures"]["tokens"][1]["data"]), strict=True) if None not in ys
    )
    assert answer["figures"]["tokens"][0]["layout"]["yaxis"]["range"][1] == pytest.approx(1.05 * tallest)


def test_periods_that_were_not_equally_observed_are_shown_and_not_compared(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    counted("a/0", hits={"gpu": 5}, computed=5, now=now, age=1500, source="once", model="other")
    answer = told(browser, "range=15m&engine=a/0")
    assert (
        answer["note"] == "Only 1.2 % as much was observed on the right side as on the left: the two are not compared."
    )
    assert row(answer, "Hit rate") == ("60.0 %", "50.0 %", "–")


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("engine=a/0", "The right side was not observed at all: there is nothing to compare."),
        ("engine=a/0&other=idle/0", "Nothing was asked on the right side: there is nothing to compare."),
    ],
)
def test_why_there_is_nothing_to_compare_is_said(browser: Client, now: float, query: str, note: str) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    idle = SeededEngine(engine="idle/0", source_name="idle")
    idle.scrape(now - 100, {}, {})
    idle.store(now)
    assert told(browser, f"range=15m&{query}")["note"] == note


def test_a_tier_of_which_an_engine_tells_nothing_is_a_dash_and_no_zero(browser: Client, now: float) -> None:
    observed("a/0", now=now, ages=[850], gpu=60, computed=40)
    counted("u/0", hits={"unattributed": 30}, computed=70, now=now)
    answer = told(browser, "range=15m&engine=a/0&other=u/0")
    assert row(answer, "from gpu") == ("60.0 %", "–", "–")
    assert row(answer, "from unattributed") == ("–", "30.0 %", "–")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("other=a/0&engine=a/0&against=same", "Both sides are the same"),
        ("against=same", "Both sides are the same"),
        ("range=7d&against=day", "The two periods overlap"),
        ("other=nobody", "There is no engine “nobody”."),
        ("engine=nobody", "There is no engine “nobody”."),
        ("against=yesterday", "against is “yesterday”"),
        ("against=at", "at is “”"),
        ("at=2999-01-01T00:00Z", "lies in the future"),
        ("start=0&end=3600&against=week", "before 1970"),
        ("range=2h", "range is “2h”"),
        ("other=" + "x" * 201, "other is not a name"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(browser: Client, now: float, query: str, sentence: str) -> None:
    counted("a/0", hits={"gpu": 5}, computed=5, now=now)
    for path in ("/api/compare.json", "/api/charts/compare.csv"):
        answer = browser.get(f"{path}?{query}")
        assert answer.status_code == 400
        assert sentence in answer.json()["error"]
        assert answer.json()["error"].endswith(".")


def test_the_page_offers_every_engine_for_the_right_side(browser: Client, now: float) -> None:
    counted("a/0", hits={"gpu": 5}, computed=5, now=now)
    page = browser.get("/compare/").content.decode()
    assert page.count("<option>a/0</option>") == 2
    assert '<option value="week">a week earlier</option>' in page


@given(
    start=st.integers(1_600_000_000, 1_799_000_000),
    length=st.integers(60, 40 * DAY),
    shift=st.none() | st.integers(-30 * DAY, 400 * DAY),
)
def test_both_periods_have_the_same_steps_and_the_asked_distance(start: int, length: int, shift: int | None) -> None:
    now = 1_800_000_000.0
    left, right = twins(start, start + length, shift, now=now)
    assert left.step_seconds == right.step_seconds
    assert left.end - left.start == right.end - right.start
    assert 0 <= left.end - (start + length) < left.step_seconds
    moved = left.start - right.start
    assert moved == left.end - left.start if shift is None else abs(moved - shift) <= left.step_seconds / 2


def test_a_period_before_1970_is_refused() -> None:
    with pytest.raises(PeriodError, match=r"before 1970"):
        twins(0, 3_600, DAY, now=1_800_000_000.0)
