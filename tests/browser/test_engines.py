"""One engine, two sides, the list of pages on a phone, and alerts that come by themselves, in a real browser."""

import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack

pytestmark = pytest.mark.usefixtures("many")
PHONE: dict[str, Any] = {"width": 390, "height": 844}


def opened(visits: Visits, path: str, **options: Any) -> Page:
    page = visits.open(path, **options)
    page.wait_for_selector("body[data-ready]")
    return page


def half_an_hour() -> str:
    """The last one, but for what is still being recorded."""
    end = int(time.time()) // 60 * 60 - 60
    return f"start={end - 1800}&end={end}"


def tile(page: Page, key: str) -> str:
    return page.locator(f"[data-tile={key}] .value").inner_text()


def test_an_engine_s_page_has_the_numbers_of_the_overview_and_leads_on_with_its_period(visits: Visits) -> None:
    asked = half_an_hour()
    page = opened(visits, f"/engines/local/?{asked}")
    overview = visits.overview(f"?{asked}&engine=local")
    for key in ("prompt_tokens", "hit_rate", "computed_tokens", "ttft_p95"):
        assert tile(page, key) == tile(overview, key) != "–"
    expect(page.locator(".chart[data-drawn=true]")).to_have_count(4)
    expect(page.locator("#facts")).to_contain_text("one of our own")
    expect(page.locator("#sizes-rows tr")).to_have_count(3)
    page.get_by_role("link", name="1 h", exact=True).click()
    page.wait_for_url("**/engines/local/?range=1h")
    page.get_by_role("link", name="Compare", exact=True).last.click()
    page.wait_for_url("**/compare/?range=1h&engine=local")


def test_a_watched_engine_s_page_says_what_it_does_not_tell(visits: Visits) -> None:
    page = opened(visits, "/engines/gpu-7/0/?range=1h")
    expect(page.locator("#facts")).to_contain_text("gpu-7.invalid")
    expect(page.locator("#untold")).to_contain_text("there is no split by tier and no hit rate")
    assert tile(page, "hit_rate") == "–"
    expect(page.get_by_role("link", name="Source in the admin")).to_be_visible()


def test_two_engines_are_chosen_and_the_link_shows_both_sides_again(visits: Visits) -> None:
    page = opened(visits, f"/compare/?{half_an_hour()}&engine=local")
    expect(page.locator("#against")).to_have_value("before")
    page.locator("#other").select_option("second")
    expect(page.locator("#compared-names")).to_contain_text("second")
    assert "other=second" in page.url
    expect(page.locator("#against")).to_have_value("same")
    expect(page.locator("[data-figure=compared]")).to_have_attribute("data-drawn", "true")
    cells = page.locator("#compared-rows tr").first.locator("td").all_inner_texts()
    again = opened(visits, page.url.removeprefix(visits.stack.base_url))
    assert again.locator("#compared-rows tr").first.locator("td").all_inner_texts() == cells
    ranges = page.locator("#sides .plotted").evaluate_all("all => all.map((e) => e.layout?.yaxis.range.join())")
    assert ranges[0::2] == ranges[1::2]


def test_what_cannot_be_compared_is_said_and_mended_by_another_choice(visits: Visits) -> None:
    page = opened(visits, "/compare/?range=15m&engine=local")
    page.locator("#against").select_option("same")
    expect(page.locator("#error")).to_contain_text("Both sides are the same")
    visits.watch.problems.clear()  # the browser itself writes a line about the answer 400
    expect(page.locator("#compared")).to_be_hidden()
    page.locator("#against").select_option("before")
    expect(page.locator("#error")).to_be_hidden()
    expect(page.locator("#compared-rows tr").first).to_contain_text("points")


@pytest.mark.parametrize("path", ["/engines/local/", "/models/", "/compare/?engine=local", "/fleet/", "/requests/"])
def test_on_a_phone_nothing_scrolls_sideways(visits: Visits, path: str) -> None:
    page = visits.open(path, **PHONE)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = """all => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.ariaLabel)"""
    assert page.locator(".scroll-x").evaluate_all(wide) == []


def test_on_a_phone_the_pages_are_behind_a_button_that_the_keyboard_reaches(visits: Visits) -> None:
    page = visits.overview(**PHONE)
    header = page.locator("header.top").bounding_box()
    assert header is not None
    assert header["height"] < 60
    button = page.get_by_role("button", name="Pages")
    fleet = page.get_by_role("link", name="Fleet", exact=True)
    expect(fleet).to_be_hidden()
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(fleet).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Overview", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(fleet).to_be_hidden()
    expect(button).to_be_focused()


def test_an_alert_comes_onto_the_page_by_itself_and_leads_to_its_engine(visits: Visits, many: SeededStack) -> None:
    page = opened(visits, "/alerts/")
    expect(page.get_by_text("No alert is pending or firing.")).to_be_visible()
    page.evaluate("window.stays = true")
    many.seed("an_alert")
    expect(page.locator("#active-rows")).to_contain_text("gpu-7 could not be read lately.", timeout=15_000)
    expect(page.locator("#firing")).to_have_text("1 firing")
    assert page.evaluate("window.stays"), "the page was loaded anew"
    page.get_by_role("link", name="gpu-7/0").click()
    page.wait_for_url("**/engines/gpu-7/0/")
    expect(page.locator("#engine-alerts")).to_contain_text("gpu-7 could not be read lately.")
