"""The overview while things change: sizes, sources that fall silent, engines that load, a stream that breaks."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack

POLLED = 25_000  # milliseconds: two polls and a busy machine


def test_a_size_changed_in_the_admin_becomes_a_mark_on_the_open_chart(visits: Visits, seeded: SeededStack) -> None:
    page = visits.overview()
    chart = page.locator("[data-chart=tokens]")
    chart.get_by_text("Numbers as a table").click()
    expect(chart.locator("li")).to_have_count(1)
    admin = visits.open("/admin/dashboard/tiersetting/")
    admin.get_by_role("link", name="Change CPU DRAM of local").click()
    admin.get_by_label("Size").fill("4000")
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_text("The engine applies it within two seconds.")).to_be_visible()
    expect(chart.locator("li")).to_have_count(2, timeout=POLLED)
    expect(chart.locator("li").last).to_contain_text("local cpu resized: 1.95 KiB → 3.91 KiB (admin)")
    assert chart.locator(".shapelayer path[style*='dash']").count() == 2
    seeded.seeded = ()


def test_without_the_stream_the_page_polls(visits: Visits, seeded: SeededStack) -> None:
    page = visits.open("/login/")
    page.route("**/events", lambda route: route.abort())
    page.goto("/?range=6h")
    page.wait_for_selector("body[data-ready]")
    before = page.locator("[data-tile=prompt_tokens] .value").inner_text()
    seeded.seed("one_more_request")
    expect(page.locator("[data-tile=prompt_tokens] .value")).not_to_have_text(before, timeout=POLLED)
    expect(page.locator("#live")).to_have_text("Polling every 10 s")
    visits.watch.problems = [problem for problem in visits.watch.problems if "/events" not in problem]


def test_a_source_that_fell_silent_is_greyed_with_the_time_and_never_drawn_as_zero(
    visits: Visits, pages_stack: SeededStack
) -> None:
    pages_stack.seed("an_hour_that_ended_two_hours_ago")
    page = visits.overview("?range=6h")
    expect(page.locator("#stale")).to_contain_text("Source embedded is stale. Last read 2 hours ago")
    expect(page.locator("[data-chart=tokens]")).to_have_attribute("data-stale", "true")
    newest = page.evaluate("""
        fetch("/api/charts/tokens.json?range=6h").then((answer) => answer.json())
        .then(({ figure }) => figure.data.map((trace) => trace.y.at(-10)))""")
    assert newest == [None, None, None, None]


@pytest.fixture
def loading_engine(pages_stack: SeededStack) -> Iterator[None]:
    """A second engine that has read 40 % of its weights."""
    told = {"boot_id": "b", "at": 0, "status": "loading", "progress": ["Reading weights", 0.4], "model_name": "big"}
    valkey = pages_stack.valkey()
    valkey.set("ts:engine:second", json.dumps(told))
    yield
    valkey.delete("ts:engine:second")


@pytest.mark.usefixtures("seeded", "loading_engine")
def test_an_engine_that_loads_its_model_shows_how_far_it_is(visits: Visits) -> None:
    page = visits.overview()
    expect(page.get_by_label("Engine second is loading")).to_have_attribute("value", "0.4")
    expect(page.locator("#loading")).to_contain_text("Reading weights (40 %)")


@pytest.mark.usefixtures("seeded")
def test_a_server_that_goes_away_is_said_to_be_away_and_the_numbers_stay(visits: Visits) -> None:
    page = visits.overview(alone=True)
    before = page.locator("[data-tile=prompt_tokens] .value").inner_text()
    page.context.set_offline(True)
    expect(page.locator("#error")).to_have_text("The server cannot be reached.", timeout=POLLED)
    expect(page.locator("#live")).to_have_text("Not connected")
    expect(page.locator("[data-tile=prompt_tokens] .value")).to_have_text(before)
    page.context.set_offline(False)
    expect(page.locator("#error")).to_be_hidden(timeout=POLLED)
    visits.watch.problems = [problem for problem in visits.watch.problems if "INTERNET_DISCONNECTED" not in problem]


@pytest.mark.usefixtures("seeded")
def test_a_session_that_ended_leads_to_the_login_and_back(visits: Visits) -> None:
    page = visits.overview(alone=True)
    page.get_by_role("link", name="6 h", exact=True).click()
    expect(page).to_have_url(re.compile("range=6h"))
    page.context.clear_cookies()
    expect(page).to_have_url(re.compile("/login/.next=.*range%3D6h"), timeout=POLLED)
    visits.watch.problems = [problem for problem in visits.watch.problems if "401" not in problem]


@pytest.mark.usefixtures("seeded")
def test_a_question_mark_explains_its_number_and_escape_closes_it(visits: Visits) -> None:
    page = visits.overview()
    page.get_by_label("What Hit rate means").click()
    words = page.locator("[data-tile=hit_rate] .hint p")
    expect(words).to_contain_text("Only full blocks are reused and the last prompt token is always computed")
    page.keyboard.press("Escape")
    expect(words).to_be_hidden()
