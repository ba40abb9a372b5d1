"""The tiers page in a real browser: cards, Sankey, charts and their tables; narrow, dark, empty and stale."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack

TIERS = ("gpu", "cpu", "disk", "remote")


def tiers_page(visits: Visits, query: str = "?range=1h", width: int = 1400) -> Page:
    page = visits.open(f"/tiers/{query}", width=width)
    page.wait_for_selector("body[data-ready]")
    return page


@pytest.mark.usefixtures("seeded")
def test_each_tier_has_a_card_that_says_whether_it_pays(visits: Visits) -> None:
    page = tiers_page(visits)
    assert page.locator("[data-tier]").evaluate_all("cards => cards.map((card) => card.dataset.tier)") == list(TIERS)
    cpu = page.get_by_role("article", name="cpu", exact=True)
    expect(cpu.locator(".verdict")).to_have_text("pays")
    expect(cpu).to_contain_text("times as fast as computing")
    expect(cpu).to_contain_text("/ 1,000 tokens")
    expect(page.locator("#prefill")).to_contain_text("Computing 1,000 prompt tokens took 2 s")


@pytest.mark.usefixtures("seeded")
def test_the_sankey_is_drawn_and_its_table_says_the_same(visits: Visits) -> None:
    page = tiers_page(visits)
    flows = page.locator("#flows")
    links = flows.locator(".sankey-link")
    expect(links.first).to_be_visible()
    flows.get_by_text("Numbers as a table").click()
    rows = flows.locator("tbody tr")
    assert rows.count() == links.count() >= 5
    expect(rows.filter(has_text="computed").first).to_contain_text("gpu")


@pytest.mark.usefixtures("seeded")
def test_every_chart_of_the_tiers_is_drawn_and_can_be_read_as_a_table(visits: Visits) -> None:
    page = tiers_page(visits)
    for name in ("bandwidth", "load-times", "failures", "skipped"):
        chart = page.locator(f"[data-chart={name}]")
        expect(chart.locator("svg.main-svg").first).to_be_visible()
        chart.get_by_text("Numbers as a table").click()
        expect(chart.locator("tbody tr").nth(5)).to_be_attached()
    legend = page.locator("[data-chart=bandwidth] .legendtext").all_text_contents()
    assert legend == ["cpu loaded", "cpu stored", "disk loaded", "disk stored", "tier changed"]


@pytest.mark.usefixtures("seeded")
def test_the_navigation_leads_here_and_another_period_changes_the_cards(visits: Visits) -> None:
    page = visits.overview()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Tiers").click()
    page.wait_for_selector("body[data-ready]")
    hits = page.locator("[data-tier=gpu] dd").first
    before = hits.inner_text()
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(hits).not_to_have_text(before)
    assert "range=1h" in page.url


@pytest.mark.usefixtures("seeded")
def test_the_tiers_page_fits_a_phone_and_has_no_control_without_a_name(visits: Visits) -> None:
    page = tiers_page(visits, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    nameless = "button, a, summary, select, [role=region], [role=img]"
    names = page.locator(nameless).evaluate_all(
        "all => all.filter((e) => !(e.innerText.trim() || e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert [name for name in names if "data-theme-toggle" not in name] == []


@pytest.mark.usefixtures("seeded")
def test_the_sankey_follows_the_theme(visits: Visits) -> None:
    page = tiers_page(visits)
    label = page.locator("#flows .node-label").first
    colour = "element => getComputedStyle(element).fill"
    light = label.evaluate(colour)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert label.evaluate(colour) != light


def test_before_any_traffic_the_page_says_how_to_send_some(visits: Visits, pages_stack: SeededStack) -> None:
    pages_stack.seed("nothing")
    page = tiers_page(visits)
    expect(page.get_by_role("heading", name="No traffic yet")).to_be_visible()
    expect(page.locator("#flows .message")).to_have_text("No engine tells what moves between its tiers.")
    expect(page.locator("[data-tier=disk] .verdict")).to_have_text("not known")


def test_numbers_of_a_source_that_is_not_read_any_more_are_said_to_be_old(
    visits: Visits, pages_stack: SeededStack
) -> None:
    pages_stack.seed("an_hour_that_ended_two_hours_ago")
    page = tiers_page(visits, "?range=6h")
    expect(page.locator("#stale")).to_contain_text("Last read 2 hours ago")
    expect(page.locator("#flows")).to_have_attribute("data-stale", "true")
