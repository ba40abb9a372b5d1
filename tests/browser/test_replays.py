"""The page of replays in a real browser: runs and their links, side by side, a new one from an upload to its end."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visits
from tests.browser.driver import SeededStack
from tests.dashboard.replaying import requests


@pytest.fixture(scope="module", autouse=True)
def two_replays(pages_stack: SeededStack) -> None:
    pages_stack.seed("two_replays")


def replays(visits: Visits, width: int = 1400) -> Page:
    page = visits.open("/replays/", width=width)
    page.wait_for_selector("body[data-ready]")
    return page


def run(page: Page, name: str) -> Locator:
    return page.locator(f"[data-run={name}]")


def test_a_run_says_what_it_found_and_its_links_show_the_same_on_the_charts(visits: Visits) -> None:
    page = replays(visits)
    small = run(page, "small")
    expect(small).to_contain_text("done · 300 of 300 requests")
    expect(small).to_contain_text("gpu 16 blocks, LRU")
    prompt = sum(each["prompt_tokens"] for each in requests())
    small.get_by_role("link", name="Overview").click()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("[data-tile=prompt_tokens] .value")).to_have_text(f"{prompt:,}")
    expect(page.get_by_role("combobox", name="Engine")).to_have_value("small")
    page.get_by_role("combobox", name="Engine").select_option("")
    expect(page.locator("[data-tile=prompt_tokens] .value")).not_to_have_text(f"{prompt:,}")


def test_runs_are_seen_side_by_side_with_the_numbers_of_the_api(visits: Visits) -> None:
    page = replays(visits)
    expect(page.locator("#compared")).to_be_hidden()
    for name in ("small", "large"):
        page.get_by_label(f"Compare {name}").check()
    table = page.locator("#compared table")
    expect(table.locator("thead th")).to_have_text(["large", "small"])
    expect(page.locator("[data-figure=compared]")).to_have_attribute("data-drawn", "true")
    ids = page.locator("#runs input:checked").evaluate_all("all => all.map((each) => each.value)")
    told = page.evaluate("ids => fetch(`/api/replays/compared.json?ids=${ids}`).then((a) => a.json())", ",".join(ids))
    shown = {row["name"]: row["cells"] for row in told["rows"]}
    hit_rate = table.locator("tr").filter(has_text="Hit rate").locator("td")
    expect(hit_rate).to_have_text(shown["Hit rate"])
    drawn: list[dict[str, Any]] = page.evaluate(
        "document.querySelector('[data-figure=compared] .plotted').data.map(({name, y}) => ({name, y}))"
    )
    assert drawn == [{"name": each["name"], "y": each["y"]} for each in told["figure"]["data"]]


def test_a_trace_is_uploaded_replayed_and_removed(visits: Visits, pages_stack: SeededStack, tmp_path: Path) -> None:
    path = tmp_path / "monday.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in requests(80, seed=2)))
    page = replays(visits)
    page.get_by_label("Or upload one").set_input_files(path)
    expect(page.locator("#upload-text")).to_have_text("monday.jsonl is there.")
    page.get_by_label("Size of gpu").fill("lots")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator("#new [role=alert]")).to_contain_text("“lots” is no size of a tier")
    visits.watch.problems.clear()  # the browser itself writes a line about the answer 400
    page.wait_for_selector("body[data-ready]")
    page.locator("#id_file").select_option("monday.jsonl")
    page.get_by_label("Size of gpu").fill("50")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("monday waits for the worker, which begins within seconds.")).to_be_visible()
    monday = run(page, "monday")
    expect(monday).to_contain_text("waiting")
    for action, state in (("Cancel", "cancelled"), ("Resume", "waiting")):
        page.get_by_role("button", name=f"{action} monday").click()
        expect(monday).to_have_attribute("data-state", state)
    page.evaluate("window.stays = true")
    pages_stack.seed("go_on_with_replays")
    expect(monday).to_contain_text("done · 80 of 80 requests")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove monday").click()
    expect(monday).to_have_count(0)
    assert page.evaluate("window.stays"), "the page was loaded anew"
    page.locator("#id_file").select_option("monday.jsonl")
    page.get_by_role("button", name="Delete this file").click()
    expect(page.locator("#id_file option")).to_have_count(1)


def test_the_page_fits_a_phone_and_has_no_control_without_a_name(visits: Visits) -> None:
    page = replays(visits, width=390)
    for name in ("small", "large"):
        page.get_by_label(f"Compare {name}").check()
    expect(page.locator("[data-figure=compared]")).to_have_attribute("data-drawn", "true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    nameless = "button, a, summary, select, input:not([type=hidden]), [role=region], [role=img]"
    names = page.locator(nameless).evaluate_all(
        "all => all.filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert [name for name in names if "data-theme-toggle" not in name] == []
