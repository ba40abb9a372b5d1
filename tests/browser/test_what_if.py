"""The what-if page in a real browser: sliders, typed sizes, charts that say what the API says, advice, and applying."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack

TIERS = ["gpu", "cpu", "disk"]
FIRST_SIZES = {"gpu": 1_000, "cpu": 2_000, "disk": 3_000}


@pytest.fixture(scope="module", autouse=True)
def first_sizes(pages_stack: SeededStack) -> None:
    """What the traffic was seeded for, whatever other files' tests have made of the tiers."""
    pages_stack.seed("first_sizes")

    def are_applied() -> bool:
        told = json.loads(pages_stack.valkey().get("ts:engine:local") or "{}")
        return {tier: each["capacity_bytes"] for tier, each in told.get("tiers", {}).items()} == FIRST_SIZES

    pages_stack.wait_until(are_applied, "the tiers have their first sizes")


def what_if(visits: Visits, query: str = "?range=1h", width: int = 1400) -> Page:
    page = visits.open(f"/what-if/{query}", width=width)
    page.wait_for_selector("body[data-ready]")
    return page


def slider(page: Page, tier: str) -> Locator:
    return page.locator(f"[data-slider={tier}]")


@contextmanager
def answered(page: Page) -> Iterator[None]:
    """Waits until what the server made of what was done within is shown."""
    yield
    expect(page.locator("#prediction")).to_have_attribute("aria-busy", "false")


def drawn(page: Page, name: str) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = page.evaluate(
        f"document.querySelector('[data-figure={name}] .plotted').data.map(({{name, x, y}}) => ({{name, x, y}}))"
    )
    return traces


def asked(page: Page, period: str = "1h", **sizes: str) -> Any:
    query = "".join(f"&{tier}={size}" for tier, size in sizes.items())
    return page.evaluate(
        "address => fetch(address).then((answer) => answer.json())", f"/api/what-if.json?range={period}{query}"
    )


def cell(page: Page, row: str, column: int) -> str:
    return page.locator("#rows tr").filter(has_text=re.compile(f"^{row}")).locator("td").nth(column).inner_text()


@pytest.mark.usefixtures("seeded")
def test_the_charts_numbers_are_the_api_s_before_and_after_a_slider_moves(visits: Visits) -> None:
    page = what_if(visits, "?range=6h")  # no traffic drops out of it between the two answers
    page.evaluate("window.stays = true")
    for press in (None, "End"):
        if press:
            slider(page, "cpu").focus()
            with answered(page):
                page.keyboard.press("End")
        size = page.locator("[data-typed=cpu]").input_value()
        told = asked(page, "6h", cpu=size)
        curve = drawn(page, "curve")[-1]
        assert [list(point) for point in zip(curve["x"], curve["y"], strict=True)] == told["curve"]
        bars = {trace["name"]: dict(zip(trace["y"], trace["x"], strict=True)) for trace in drawn(page, "split")}
        for tier in TIERS:
            assert bars[tier] == {
                "measured": told["measured"]["hit"][tier],
                "predicted": told["predicted"]["hit"][tier],
            }
        assert bars["computed"]["predicted"] == told["predicted"]["computed"]
        assert cell(page, "Hit rate", 3) == f"{100 * told['predicted']['hit_rate']:.1f} %"
    assert page.evaluate("window.stays"), "the page was loaded anew"
    assert cell(page, "Hit rate", 4).startswith("+")
    assert slider(page, "cpu").get_attribute("aria-valuetext") == size


@pytest.mark.usefixtures("seeded")
def test_one_tenant_s_prompts_are_looked_at_alone(visits: Visits) -> None:
    page = what_if(visits)
    with answered(page):
        page.get_by_label("Prompts of").select_option("acme")
    told = page.evaluate("fetch('/api/what-if.json?range=1h&tenant=acme').then((answer) => answer.json())")
    assert cell(page, "Hit rate", 1) == f"{100 * told['measured']['hit_rate']:.1f} %"
    assert [list(point) for point in zip(*(drawn(page, "curve")[-1][axis] for axis in "xy"), strict=True)] == told[
        "curve"
    ]
    expect(page.locator("#notes")).to_contain_text("Only the prompts of acme.")
    with answered(page):
        page.get_by_label("Prompts of").select_option("all tenants")
    assert "tenant" not in page.url
    expect(page.locator("#notes")).not_to_contain_text("Only the prompts")


@pytest.mark.usefixtures("seeded")
def test_at_today_s_sizes_measured_and_predicted_agree_and_each_tier_has_its_mark(visits: Visits) -> None:
    page = what_if(visits)
    assert page.locator("[data-slider]").evaluate_all("all => all.map((each) => each.dataset.slider)") == TIERS
    told = asked(page)
    for tier in TIERS:
        assert told["predicted"]["hit"][tier] == pytest.approx(told["measured"]["hit"][tier], abs=0.002)
    shapes = page.evaluate("document.querySelector('[data-figure=curve] .plotted').layout.shapes.map((s) => s.name)")
    assert shapes == ["gpu today", "cpu today", "disk today"]
    with answered(page):
        slider(page, "gpu").focus()
        page.keyboard.press("ArrowRight")
    shapes = page.evaluate("document.querySelector('[data-figure=curve] .plotted').layout.shapes.map((s) => s.name)")
    assert shapes[3:] == ["gpu chosen", "cpu chosen", "disk chosen"]
    with answered(page):
        page.get_by_role("button", name="Today’s sizes").click()
    assert page.locator("[data-typed=gpu]").input_value() == "1000 B"


@pytest.mark.usefixtures("seeded")
def test_a_size_is_typed_as_people_write_it_and_a_wrong_one_is_said(visits: Visits) -> None:
    page = what_if(visits)
    before = slider(page, "disk").input_value()
    typed = page.get_by_label("Size of disk")
    with answered(page):
        typed.fill("64 kib")
        typed.press("Enter")
    expect(page.locator("[data-size=disk] [data-tokens]")).to_have_text("104,857 tokens")
    assert int(slider(page, "disk").input_value()) > int(before)
    typed.fill("lots")
    with page.expect_console_message():  # the browser itself writes a line about the answer 400
        typed.press("Enter")
    expect(page.locator("#size-error")).to_have_text("disk: “lots” is not a size; write it like 2 GiB, 512 MiB or 0.")
    visits.watch.problems.clear()


@pytest.mark.usefixtures("seeded")
def test_every_tier_s_next_gib_and_the_assumptions_are_said_and_another_period_keeps_the_sizes(visits: Visits) -> None:
    page = visits.overview()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="What if").click()
    page.wait_for_selector("body[data-ready]")
    with answered(page):
        page.get_by_role("link", name="1 h", exact=True).click()
    assert page.locator("#next-gib li").count() == len(TIERS)
    kinds = page.locator("#notes dt").all_inner_texts()
    assert {"measured", "predicted", "assumed"} == set(kinds)
    expect(page.locator("#notes")).to_contain_text("Every block was looked at")
    expect(page.locator("#prices-text")).to_contain_text("No prices are typed in")
    with answered(page):
        slider(page, "gpu").focus()
        page.keyboard.press("Home")
    size = page.locator("[data-typed=gpu]").input_value()
    with answered(page):
        page.get_by_role("link", name="6 h", exact=True).click()
    assert page.locator("[data-typed=gpu]").input_value() == size


@pytest.mark.usefixtures("seeded")
def test_the_page_fits_a_phone_and_has_no_control_without_a_name(visits: Visits) -> None:
    page = what_if(visits, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    nameless = "button, a, summary, select, input, [role=region], [role=img]"
    names = page.locator(nameless).evaluate_all(
        "all => all.filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert [name for name in names if "data-theme-toggle" not in name and "csrf" not in name] == []


@pytest.mark.usefixtures("seeded")
def test_the_charts_follow_the_theme(visits: Visits) -> None:
    page = what_if(visits)
    tick = page.locator("[data-figure=split] .ytick text").first
    light = tick.evaluate("element => getComputedStyle(element).fill")
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    expect(tick).not_to_have_css("fill", light)


def test_before_any_traffic_the_page_says_what_it_needs(visits: Visits, pages_stack: SeededStack) -> None:
    pages_stack.seed("nothing")
    page = what_if(visits)
    expect(page.locator("#obstacle")).to_contain_text("No reuse was counted in this period")
    expect(page.get_by_role("heading", name="No traffic yet")).to_be_visible()
    expect(page.locator("#prediction")).to_be_hidden()


def test_a_watched_engine_without_a_curve_says_what_to_switch_on_there(
    visits: Visits, pages_stack: SeededStack
) -> None:
    pages_stack.seed("an_hour", "a_watched_vllm")
    page = what_if(visits, "?range=1h&engine=gpu-7/0")
    expect(page.locator("#obstacle")).to_contain_text("--kv-cache-metrics")
    page.get_by_role("combobox", name="Engine").select_option("local")
    expect(page.locator("#prediction")).to_be_visible()


def test_sizes_worth_their_price_are_advised_and_can_be_looked_at(visits: Visits, pages_stack: SeededStack) -> None:
    pages_stack.seed("an_hour", "prices")
    page = what_if(visits)
    page.get_by_label("At most").first.fill("0.5")
    page.get_by_role("button", name="Advise").click()
    expect(page.locator("#advice-text")).to_contain_text("sizes were tried")
    expect(page.locator("[data-figure=frontier] svg.main-svg").first).to_be_visible()
    expect(page.locator("#policies-text")).to_contain_text("TIERSCOPE_RECORD_TRACE=1 GiB")
    expect(page.locator("#policies-start")).to_be_hidden()
    cheapest = page.locator("[data-advice=Cheapest]")
    expect(cheapest).to_contain_text("a month, mean TTFT")
    with answered(page):
        cheapest.get_by_role("button", name="Show these sizes").click()
    assert cell(page, "A month costs", 3).startswith("$")
    assert cell(page, "A month costs", 4).startswith("−$")


def test_sizes_are_applied_through_the_admin_and_the_prediction_stands_in_the_record(
    visits: Visits, pages_stack: SeededStack
) -> None:
    pages_stack.seed("an_hour")
    page = what_if(visits)
    typed = page.get_by_label("Size of cpu")
    with answered(page):
        typed.fill("4000")
        typed.press("Enter")
    page.get_by_role("link", name="Apply these sizes").click()
    expect(page.locator("#id_cpu-size")).to_have_value("4000 B")
    expect(page.locator("#id_gpu-size")).to_have_value("1000 B")
    page.get_by_role("button", name="Apply these sizes").click()
    expect(page.locator(".messagelist")).to_contain_text("What was predicted is kept")
    try:
        record = what_if(visits).locator("#record")
        expect(record).to_contain_text("cpu 1.95 KiB → 3.91 KiB")
        expect(record).to_contain_text("Hit rate")
    finally:
        pages_stack.seed("first_sizes")
