"""The fleet page in a real browser: a line an engine, worst first, sorted by the heads, and links to each engine."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits


@pytest.fixture
def fleet(visits: Visits, many: object) -> Page:
    page = visits.open("/fleet/?range=1h")
    page.wait_for_selector("body[data-ready]")
    return page


def names(page: Page) -> list[str]:
    return page.locator("#fleet-rows tr").evaluate_all("all => all.map((row) => row.dataset.engine)")  # type: ignore[no-any-return]


def test_engines_are_listed_worst_first_and_sorted_by_a_click_on_a_head(fleet: Page, visits: Visits) -> None:
    assert names(fleet)[-1] == "gpu-7/0"  # it tells no hits: of none of its prompt tokens is known more
    assert fleet.locator("#fleet-rows svg.spark path").count() >= 1
    by_tokens = fleet.get_by_role("button", name="Prompt tokens", exact=True)
    by_tokens.click()
    smallest = names(fleet)
    by_tokens.click()
    assert names(fleet) == smallest[::-1]
    assert names(fleet)[0] == "second"
    expect(fleet.locator("th[aria-sort=descending]")).to_have_text("Prompt tokens")
    other = visits.open(fleet.url.removeprefix(visits.stack.base_url))
    other.wait_for_selector("body[data-ready]")
    assert names(other) == names(fleet)
    by_tokens.click()
    expect(fleet.locator("th[aria-sort=descending]")).to_have_count(0)


def test_an_engine_s_line_leads_to_its_own_page_of_the_same_period(fleet: Page) -> None:
    fleet.get_by_role("link", name="gpu-7/0").click()
    fleet.wait_for_url("**/engines/gpu-7/0/?range=1h")
    expect(fleet.get_by_role("heading", name="gpu-7/0")).to_be_visible()


def test_engines_are_added_up_by_model_and_a_model_leads_back_to_its_engines(fleet: Page, visits: Visits) -> None:
    by_engine = fleet.locator("#fleet-rows tr").count()
    fleet.get_by_role("link", name="by model").click()
    fleet.wait_for_url("**/models/?range=1h")
    row = fleet.locator("#models-rows tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(f"{by_engine} engines")
    expect(row.locator("svg.spark path")).to_have_count(1)
    row.get_by_role("link").click()
    fleet.wait_for_url("**/fleet/?range=1h&model=*")
    expect(fleet.locator("#fleet-rows tr")).to_have_count(by_engine)
    expect(fleet.locator("#model")).not_to_have_value("")
