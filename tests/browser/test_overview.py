"""The overview in a real browser: drawn, live, filtered, readable, reachable."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dashboard.valkey import SAMPLE_TRAFFIC_KEY
from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack, log_in

CHARTS = ("tokens", "hit-rate", "ttft", "residency")


def value(page: Page, tile: str) -> str:
    return page.locator(f"[data-tile={tile}] .value").inner_text()


def number(page: Page, tile: str) -> int:
    return int(value(page, tile).replace(",", ""))


def wait_until(page: Page, is_so: Callable[[], bool], seconds: int = 20) -> None:
    for _ in range(seconds * 10):
        if is_so():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not within {seconds} s")


@pytest.mark.usefixtures("seeded")
def test_every_chart_is_drawn_with_its_tiers(visits: Visits) -> None:
    page = visits.overview()
    for name in CHARTS:
        chart = page.locator(f"[data-chart={name}]")
        expect(chart.locator("svg.main-svg").first).to_be_visible()
        assert chart.locator(".trace path, .point path, .js-line").count() > 5, name
    legend = page.locator("[data-chart=tokens] .legendtext").all_text_contents()
    assert legend == ["gpu", "cpu", "disk", "computed", "tier changed"]


@pytest.mark.usefixtures("seeded")
def test_tenants_have_charts_of_their_own_and_a_table_with_their_tokens_by_origin(visits: Visits) -> None:
    page = visits.overview()
    for name in ("tenant-tokens", "tenant-hit-rate"):
        chart = page.locator(f"[data-chart={name}]")
        expect(chart.locator("svg.main-svg").first).to_be_visible()
        legend = chart.locator(".legendtext").all_text_contents()
        assert legend == ["acme", "common", "umbrella", "tier changed"], name
    rows = page.locator("#tenants-rows tr")
    assert set(rows.locator("th").all_inner_texts()) == {"common", "acme", "umbrella"}
    assert rows.first.locator(".mini i").count() == 4
    assert re.fullmatch(
        r"[\d,]+ gpu, [\d,]+ cpu, [\d,]+ disk, [\d,]+ computed",
        rows.first.locator(".mini").get_attribute("title") or "",
    )


@pytest.mark.usefixtures("seeded")
def test_the_origins_bar_adds_up_to_a_whole(visits: Visits) -> None:
    page = visits.overview()
    shares = [float(text) for text in re.findall(r"\(([\d.]+) %\)", page.locator("#origins-legend").inner_text())]
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(100, abs=0.2)


@pytest.mark.usefixtures("seeded")
def test_a_change_of_a_tier_is_marked_and_can_be_read(visits: Visits) -> None:
    page = visits.overview()
    chart = page.locator("[data-chart=hit-rate]")
    chart.get_by_text("Numbers as a table").click()
    expect(chart.locator("li")).to_contain_text("local cpu resized: 96 MiB → 192 MiB (admin)")
    expect(chart.locator(".legendtext", has_text="tier changed")).to_be_visible()


def test_what_is_recorded_shows_up_without_a_reload(visits: Visits, seeded: SeededStack) -> None:
    page = visits.overview("?range=6h")
    page.evaluate("window.isTheSamePage = true")
    before = value(page, "prompt_tokens")
    seeded.seed("one_more_request")
    expect(page.locator("[data-tile=prompt_tokens] .value")).not_to_have_text(before, timeout=12_000)
    assert int(value(page, "prompt_tokens").replace(",", "")) == int(before.replace(",", "")) + 1_234_567
    assert page.evaluate("window.isTheSamePage")


@pytest.mark.usefixtures("seeded")
def test_the_page_says_that_it_is_live(visits: Visits) -> None:
    expect(visits.overview().locator("#live")).to_have_text("Live")


@pytest.mark.usefixtures("seeded")
def test_another_range_changes_the_address_and_the_charts_and_back_returns(visits: Visits) -> None:
    page = visits.overview()
    hour = number(page, "prompt_tokens")
    page.get_by_role("link", name="5 min", exact=True).click()
    wait_until(page, lambda: number(page, "prompt_tokens") < hour / 2)
    assert "range=5m" in page.url
    expect(page.get_by_role("link", name="5 min", exact=True)).to_have_attribute("aria-current", "true")
    page.go_back()
    wait_until(page, lambda: number(page, "prompt_tokens") > hour / 2)  # not what it was: the hour moves on
    expect(page.get_by_role("link", name="1 h", exact=True)).to_have_attribute("aria-current", "true")


@pytest.mark.usefixtures("seeded")
def test_a_link_to_a_custom_period_shows_that_period(visits: Visits) -> None:
    page = visits.overview()
    page.get_by_role("button", name="Custom").click()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/?*start=*")
    other = visits.open(page.url.removeprefix(visits.stack.base_url))
    other.wait_for_selector("body[data-ready]")
    expect(other.get_by_role("button", name="Custom")).to_have_attribute("aria-current", "true")
    assert other.locator("#start").input_value() == page.locator("#start").input_value()


@pytest.mark.usefixtures("seeded")
def test_a_period_that_ends_before_it_starts_is_refused_in_words(visits: Visits) -> None:
    page = visits.overview()
    page.get_by_role("button", name="Custom").click()
    page.locator("#start").fill("2026-01-02T10:00")
    page.locator("#end").fill("2026-01-02T09:00")
    page.get_by_role("button", name="Show").click()
    assert "after the start" in page.locator("#end").evaluate("input => input.validationMessage")
    assert "start=" not in page.url


@pytest.mark.usefixtures("seeded")
def test_an_engine_can_be_chosen(visits: Visits) -> None:
    page = visits.overview()
    before = value(page, "requests")
    page.get_by_label("Engine", exact=False).first.select_option("local")
    expect(page.locator("[data-tile=requests] .value")).to_have_text(before)
    assert "engine=local" in page.url


@pytest.mark.usefixtures("seeded")
def test_every_chart_has_its_numbers_in_a_table(visits: Visits) -> None:
    page = visits.overview()
    for name in CHARTS:
        chart = page.locator(f"[data-chart={name}]")
        chart.get_by_text("Numbers as a table").click()
        expect(chart.locator("tbody tr").nth(20)).to_be_attached()
        assert chart.locator("thead th").first.inner_text() == "Time"


_OVERLAPS = """() => {
    const boxes = (chart) => [...chart.querySelectorAll(".legend .traces")].map((each) => each.getBoundingClientRect());
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const clashes = (a, index, all) => all.slice(index + 1).filter((b) => meet(a, b));
    return [...document.querySelectorAll(".chart")].filter((chart) => boxes(chart).flatMap(clashes).length)
        .map((chart) => chart.dataset.chart);
}"""


@pytest.mark.usefixtures("seeded")
def test_a_window_that_was_resized_is_drawn_anew_with_nothing_over_anything_else(visits: Visits) -> None:
    page = visits.overview(width=390, height=844)
    for width in (1400, 700, 390, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        fits = """width => [...document.querySelectorAll(".chart")].every((chart) =>
            Math.abs(chart.querySelector(".main-svg").clientWidth - chart.querySelector(".plot").clientWidth) <= 1)"""
        page.wait_for_function(fits, arg=width)
        assert page.evaluate(_OVERLAPS) == [], width


@pytest.mark.usefixtures("seeded")
def test_times_are_the_year_first_and_of_24_hours_whatever_the_browser_is_used_to(visits: Visits) -> None:
    page = visits.overview(locale="en-US", timezone_id="America/New_York")
    for summary in page.get_by_text("Numbers as a table").all():
        summary.click()
    text = page.locator("main").inner_text()
    assert re.search(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b", text)
    assert not re.search(r"\d\s?[AP]\.?M\b|\d/\d", text, re.IGNORECASE)
    assert text.count("America/New_York") == 1
    page.goto("/requests/")
    newest = page.locator("time").first
    zoned = newest.evaluate("""(element) => new Date(element.dateTime)
        .toLocaleString("sv", { timeZone: "America/New_York" })""")
    assert newest.inner_text() == zoned


@pytest.mark.parametrize("path", ["/", "/requests/", "/chat/", "/login/", "/fleet/?range=1h", "/alerts/"])
@pytest.mark.usefixtures("seeded")
def test_nothing_scrolls_sideways_on_a_phone(visits: Visits, path: str) -> None:
    page = visits.overview(width=390, height=844) if path == "/" else visits.open(path, width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.usefixtures("seeded")
def test_the_colours_follow_the_system_until_somebody_chooses(visits: Visits) -> None:
    page = visits.overview(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    toggle = page.locator("[data-theme-toggle]")
    toggle.click()
    expect(toggle).to_have_attribute("aria-label", "Colours: light")
    assert page.evaluate(ground) != dark
    page.reload()
    expect(page.locator("[data-theme-toggle]")).to_have_attribute("aria-label", "Colours: light")


@pytest.mark.usefixtures("seeded")
def test_the_period_can_be_changed_with_the_keyboard_alone(visits: Visits) -> None:
    page = visits.overview()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.range") == "6h":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="6 h", exact=True)).to_have_attribute("aria-current", "true")
    assert "range=6h" in page.url


@pytest.mark.usefixtures("seeded")
def test_everything_to_press_or_choose_has_a_name(visits: Visits) -> None:
    page = visits.overview()
    nameless = page.evaluate("""
        [...document.querySelectorAll("a, button, input:not([type=hidden]), select, summary")]
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
        .map((e) => e.outerHTML)""")
    assert nameless == []


def test_before_any_traffic_the_page_says_how_to_send_some(visits: Visits, pages_stack: SeededStack) -> None:
    pages_stack.seed("nothing")
    page = visits.overview()
    expect(page.get_by_role("heading", name="No traffic yet")).to_be_visible()
    expect(page.locator("#empty pre")).to_contain_text(f"{pages_stack.base_url}/v1/chat/completions")
    expect(page.locator("[data-chart=tokens] .message")).to_have_text("No prompt tokens in this period.")


@pytest.mark.usefixtures("seeded")
def test_a_period_without_traffic_offers_longer_ones(visits: Visits) -> None:
    page = visits.overview("?start=1700000000&end=1700003600")
    expect(page.get_by_role("heading", name="Nothing was asked in this period")).to_be_visible()
    page.get_by_role("link", name="the last 24 hours").click()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#empty")).to_be_hidden()


@pytest.mark.usefixtures("seeded")
def test_what_came_of_sample_traffic_can_be_closed_and_stays_closed(visits: Visits) -> None:
    told = {"sent": 43, "total": 57, "message": "stopped after 43 of 57 requests: this machine is slow"}
    visits.stack.valkey().set(SAMPLE_TRAFFIC_KEY, json.dumps(told))
    page = visits.overview()
    expect(page.get_by_text("stopped after 43 of 57 requests")).to_be_visible()
    page.get_by_role("button", name="Close the message about sample traffic").click()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#sample")).to_be_hidden()
    visits.stack.valkey().delete(SAMPLE_TRAFFIC_KEY)


@pytest.mark.usefixtures("seeded")
def test_a_wrong_address_says_so_and_shows_the_default(visits: Visits) -> None:
    page = visits.overview("?range=2h")
    expect(page.get_by_role("alert").filter(has_text="range is “2h”")).to_be_visible()
    assert value(page, "prompt_tokens") != "–"
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page.get_by_role("link", name="1 h", exact=True)).to_have_attribute("aria-current", "true")


def test_a_page_that_needs_a_login_returns_to_itself_after_it(visits: Visits, seeded: SeededStack) -> None:
    page = visits.open("/requests/", logged_in=False)
    assert page.url.endswith("/login/?next=/requests/")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(seeded.admin_password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/requests/")


def test_logging_out_ends_the_session(visits: Visits, seeded: SeededStack) -> None:
    page = visits.open("/login/", logged_in=False)
    log_in(page, seeded.admin_password)
    page.wait_for_selector("body[data-ready]")  # what is asked for as the session ends is refused
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login/**")
    page.goto("/chat/")
    assert "/login/" in page.url
