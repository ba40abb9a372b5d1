"""The fleet page in a real browser: a line an engine, worst first, sorted by the heads, and links to each engine."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack


@pytest.fixture
def fleet(visits: Visits, seeded: SeededStack) -> Page:
    seeded.seed("an_hour", "a_watched_vllm", "one_more_request")
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


def test_an_engine_s_line_leads_to_its_own_charts_of_the_same_period(fleet: Page) -> None:
    fleet.get_by_role("link", name="gpu-7/0").click()
    fleet.wait_for_url("**/?range=1h&engine=gpu-7%2F0")
    expect(fleet.locator("#engine")).to_have_value("gpu-7/0")
