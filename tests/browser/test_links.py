"""Links and files of a page: who opens the one, or reads the other, finds what was on the screen."""

import csv
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits

pytestmark = pytest.mark.usefixtures("seeded")


def period() -> str:
    """The last half hour, but for what is still being recorded."""
    end = int(time.time()) // 60 * 60 - 60
    return f"start={end - 1800}&end={end}"


def prompt_tokens(page: Page) -> int:
    return int(page.locator("[data-tile=prompt_tokens] .value").inner_text().replace(",", ""))


def copied_link(page: Page, name: str) -> str:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Copy link", exact=True).click()
    page.get_by_role("button", name=name).click()
    expect(page.locator("#link-said")).to_have_text("Copied.")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_chart_s_numbers_are_downloaded_by_keyboard_and_add_up_to_the_tile(visits: Visits) -> None:
    page = visits.overview(f"?{period()}&engine=local")
    page.locator("[data-chart=tokens] .menu summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("[data-chart=tokens] [data-kind=csv]")).to_be_focused()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.startswith("tierscope-tokens-20")
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert sum(int(row["prompt_tokens"] or 0) for row in rows) == prompt_tokens(page) > 0
    page.keyboard.press("Escape")
    expect(page.locator("[data-chart=tokens] .menu summary")).to_be_focused()
    expect(page.locator("[data-chart=tokens] [data-kind=csv]")).to_be_hidden()


def test_a_link_to_exactly_this_period_shows_the_same_in_another_browser(visits: Visits) -> None:
    page = visits.overview("?range=15m&engine=local", alone=True)
    page.get_by_role("button", name="Colours: as the system has them").click()
    page.get_by_role("button", name="Colours: light").click()
    link = copied_link(page, "to exactly this period")
    before = prompt_tokens(page)
    other = visits.overview(link.partition("/?")[2].join(["?", ""]))
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    expect(other.get_by_role("button", name="Custom")).to_have_attribute("aria-current", "true")
    assert other.locator("#engine").input_value() == "local"
    assert abs(prompt_tokens(other) - before) <= before / 10  # at most a step that went on meanwhile
    other.get_by_role("button", name="Colours: dark").click()
    expect(other.locator("html")).to_have_attribute("data-theme", "auto")
    assert "theme" not in other.url


def test_a_link_to_a_range_moves_on_and_keeps_theme_and_filters_through_other_ranges(visits: Visits) -> None:
    page = visits.overview("?theme=dark")
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    link = copied_link(page, "to this range, up to now")
    assert set(link.partition("?")[2].split("&")) == {"range=1h", "theme=dark"}


@pytest.mark.parametrize("width", [1400, 800, 390])
def test_the_menu_of_links_is_wholly_in_sight(visits: Visits, width: int) -> None:
    page = visits.open("/fleet/?range=1h", width=width)
    page.get_by_text("Copy link", exact=True).click()
    box = page.locator("#link .items").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= width


def test_a_link_to_the_tiers_page_has_its_filters_and_files(visits: Visits) -> None:
    page = visits.open("/tiers/?range=1h")
    page.wait_for_selector("body[data-ready]")
    assert "/tiers/?start=" in copied_link(page, "to exactly this period")
    page.locator("#flows .menu summary").click()
    with page.expect_download() as download:
        page.locator("#flows [data-kind=parquet]").click()
    assert Path(download.value.path()).read_bytes()[:4] == b"PAR1"


def test_a_link_to_what_if_has_its_sizes(visits: Visits) -> None:
    page = visits.open("/what-if/?range=1h")
    page.wait_for_selector("body[data-ready]")
    typed = page.locator("[data-typed=cpu]")
    typed.fill("4 KiB")
    typed.press("Enter")
    page.wait_for_url("**cpu=4*")
    expect(page.locator("#prediction")).to_have_attribute("aria-busy", "false")
    link = copied_link(page, "to this range, up to now")
    other = visits.open(link.partition(visits.stack.base_url)[2])
    other.wait_for_selector("body[data-ready]")
    expect(other.locator("[data-typed=cpu]")).to_have_value("4 KiB")
    expect(other.locator("#reset")).to_be_enabled()
    other.get_by_role("button", name="Today’s sizes").click()
    expect(other).not_to_have_url(re.compile("cpu="))
