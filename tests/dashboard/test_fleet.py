"""The fleet's table: every engine's tokens as the totals have them, worst first, with a line of its hit rate."""

import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Source
from dashboard.selectors import totals
from dashboard.selectors.fleet import engine_tokens, sparks
from dashboard.selectors.period import Period, between
from tests.dashboard.live_engine import publish
from tests.dashboard.seeded import MODEL, SeededEngine, counted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


def rows(browser: Client, query: str = "range=15m") -> list[dict[str, Any]]:
    answer = browser.get(f"/api/fleet.json?{query}")
    assert answer.status_code == 200, answer.content
    told: list[dict[str, Any]] = answer.json()["rows"]
    return told


def test_each_engine_s_tokens_are_those_of_the_totals_and_its_line_s(browser: Client) -> None:
    now = time.time()
    counted("gpu-1/0", hits={"gpu": 60, "disk": 20}, computed=20, now=now)
    counted("gpu-2/0", hits={"unattributed": 30}, computed=None, now=now)
    period = between(now - 900, now, now=now)
    found = engine_tokens(period)
    for (name, _), told in found.items():
        summed = totals.totals(period, engine=name)
        assert (told.prompt_tokens, dict(told.hit_tokens), told.hit_rate) == (
            summed["prompt_tokens"],
            summed["hit_tokens"],
            summed["hit_rate"],
        )
        assert [rate for rate in told.rates if rate is not None] == [told.hit_rate]
    assert found["gpu-2/0", MODEL].computed_tokens is None


def test_the_worst_comes_first(browser: Client) -> None:
    now = time.time()
    counted("good/0", hits={"gpu": 90}, computed=10, now=now)
    counted("poor/0", hits={"gpu": 10}, computed=90, now=now)
    counted("idle/0", hits={}, computed=0, now=now)
    counted("lost/0", hits={"gpu": 99}, computed=1, now=now)
    counted("off/0", hits={"gpu": 50}, computed=50, now=now)
    Source.objects.exclude(name="embedded").update(kind="vllm")
    Source.objects.filter(name="lost").update(last_ok_at=None, last_scraped_at="2026-01-01T00:00:00Z")
    Source.objects.filter(name="off").update(is_enabled=False)
    told = rows(browser)
    assert [row["engine"] for row in told] == ["lost/0", "poor/0", "off/0", "good/0", "idle/0"]
    assert [row["state"] for row in told] == ["failing", "up", "off", "up", "up"]
    assert told[1]["hit_rate_text"] == "10.0 %"
    assert told[4]["hit_rate"] is None
    assert [(part["origin"], part["tokens"]) for part in told[1]["origins"]] == [("gpu", 10), ("computed", 90)]


def test_an_engine_that_tells_no_hits_has_no_hit_rate(browser: Client) -> None:
    now = time.time()
    told = SeededEngine(engine="gpu-1/0", source_name="gpu-1")
    told.add(now - 100, "scrapes", 1)
    told.add(now - 100, "prompt_tokens", 50)
    told.store(now)
    (row,) = rows(browser)
    assert (row["prompt_tokens"], row["hit_rate"], row["hit_rate_text"], row["origins"]) == (50, None, "–", [])
    assert set(row["rates"]) == {None}


def test_filters_keep_one_engine_and_one_model(browser: Client) -> None:
    now = time.time()
    counted("gpu-1/0", hits={"gpu": 60}, computed=20, now=now)
    counted("gpu-2/0", hits={"gpu": 60}, computed=20, now=now)
    assert [row["engine"] for row in rows(browser, "range=1h&engine=gpu-2/0")] == ["gpu-2/0"]
    assert rows(browser, "range=1h&model=none") == []


def test_our_own_engine_says_itself_how_it_is(browser: Client) -> None:
    now = time.time()
    counted("local", hits={"gpu": 60}, computed=20, now=now, source="embedded")
    assert (rows(browser)[0]["state"], rows(browser)[0]["is_wrong"]) == ("offline", True)
    publish("local")
    assert (rows(browser)[0]["state"], rows(browser)[0]["is_wrong"]) == ("ready", False)


def test_an_empty_store_has_no_rows(browser: Client) -> None:
    assert rows(browser, "range=30d") == []


@pytest.mark.parametrize("seconds", [300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000, 5 * 366 * 86_400])
def test_a_line_has_few_points_whatever_the_period(seconds: int) -> None:
    end = 1_800_000_000
    period = between(end - seconds, end, now=end)
    steps = sparks(period)
    assert 5 <= len(steps.starts) <= 34
    assert isinstance(steps, Period)
    assert steps.start <= period.start < period.end <= steps.end


@pytest.mark.parametrize("page", ["/fleet/", "/models/"])
def test_the_colours_of_the_bars_are_named(browser: Client, page: str) -> None:
    told = browser.get(page).content.decode()
    assert re.findall(r'<li data-origin="(\w+)"><span class="swatch">', told) == [
        *("gpu", "cpu", "disk", "remote", "unattributed", "computed", "untold")
    ]
