"""The admin in a real Chromium: sizes typed and seen applied live, a tier cleared, a key made, on small screens too."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.admin_stack import AdminStack

pytestmark = pytest.mark.browser
LIST = "/admin/dashboard/tiersetting/"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, valkey_server: str) -> Iterator[AdminStack]:
    made = AdminStack(tmp_path_factory.mktemp("admin"), valkey_server)
    made.prepare()
    with made.web():
        yield made


@pytest.fixture(scope="module")
def signed_in(stack: AdminStack, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cookies of a session, so that only one test goes through the login page."""
    page = chromium.new_page()
    page.goto(f"{stack.url}/admin/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name=re.compile("log in", re.IGNORECASE)).click()
    expect(page.get_by_role("heading", name="Tiers and settings")).to_be_visible()
    path = tmp_path_factory.mktemp("cookies") / "state.json"
    page.context.storage_state(path=path)
    page.close()
    return path


@pytest.fixture(scope="module")
def context(stack: AdminStack, chromium: Browser, signed_in: Path) -> Iterator[BrowserContext]:
    """One window for all, whose first page stays open: see SHARED_RENDERER."""
    opened = chromium.new_context(base_url=stack.url, storage_state=signed_in)
    opened.new_page().goto("/login/")
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, stack: AdminStack) -> Iterator[Page]:
    """Fails the test for a console error or for a request to another host."""
    opened = context.new_page()
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith(stack.url) else problems.append(request.url))
    yield opened
    opened.evaluate("localStorage.clear()")
    for each in context.pages[1:]:
        each.close()
    assert problems == []


@pytest.fixture(scope="module")
def engine(stack: AdminStack) -> Iterator[None]:
    """Runs from the first test that asks for it; the one about an engine that goes away comes before."""
    with stack.engine():
        yield


def field(page: Page, tier: str, name: str) -> Locator:
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=tier, exact=True))
    return row.locator(f'[data-field="{name}"]')


def open_list(page: Page) -> None:
    """The tiers, once the engine has told of itself; the page finds that out without a reload by hand."""
    page.goto(LIST)
    expect(field(page, "CPU DRAM", "state")).to_have_text("applied", timeout=30_000)


def test_an_engine_that_goes_away_is_said_to_be_offline_and_its_new_size_waits_for_it(
    page: Page, stack: AdminStack
) -> None:
    with stack.engine():
        open_list(page)
    expect(field(page, "GPU", "state")).to_have_text("offline", timeout=15_000)
    page.get_by_role("link", name="Change GPU of local").click()
    page.get_by_label("Size").fill("128 MiB")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The engine is offline; it applies this at its next start.")).to_be_visible()
    with stack.engine():
        expect(field(page, "GPU", "state")).to_have_text("applied", timeout=30_000)
        expect(field(page, "GPU", "applied")).to_have_text(re.compile("^12[78]"))


def test_a_size_typed_in_the_admin_is_seen_applied_without_a_reload(page: Page, engine: None) -> None:
    open_list(page)
    page.get_by_role("link", name="Change CPU DRAM of local").click()
    page.get_by_label("Size").fill("256 MiB")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("resize 192 MiB → 256 MiB. The engine applies it within two seconds.")).to_be_visible()
    expect(field(page, "CPU DRAM", "desired")).to_have_text("256 MiB")
    expect(field(page, "CPU DRAM", "applied")).to_have_text(re.compile("^25[56]"))
    expect(field(page, "CPU DRAM", "state")).to_have_text("applied")
    expect(field(page, "CPU DRAM", "last_change")).to_contain_text("by admin")


def test_when_blocks_are_stored_and_loaded_is_chosen_and_seen_applied_without_a_reload(
    page: Page, engine: None
) -> None:
    open_list(page)
    page.get_by_role("link", name="Change CPU DRAM of local").click()
    page.get_by_label("Write mode").select_option("write_selective")
    page.get_by_label("Store at hit number").fill("3")
    page.get_by_label("Load from here").select_option("when_cheaper")
    page.get_by_role("button", name="Save", exact=True).click()
    modes = "LRU, write selective at hit 3, loaded when cheaper"
    expect(field(page, "CPU DRAM", "modes")).to_have_text(modes)
    expect(field(page, "CPU DRAM", "state")).to_have_text("applied")
    expect(field(page, "CPU DRAM", "applied_modes")).to_have_text("")


def test_a_size_that_the_machine_does_not_have_is_refused_beside_its_field(page: Page, engine: None) -> None:
    open_list(page)
    page.get_by_role("link", name="Change Disk of local").click()
    page.get_by_label("Size").fill("1 TiB")
    page.get_by_role("button", name="Save", exact=True).click()
    sentence = "The Disk tier of local can have at most 4 GiB (as this test has it); 1 TiB was asked for."
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(page.get_by_label("Size")).to_have_value("1 TiB")


def test_two_admins_at_once_do_not_overwrite_each_other(page: Page, context: BrowserContext, engine: None) -> None:
    open_list(page)
    page.get_by_role("link", name="Change Disk of local").click()
    other = context.new_page()
    other.goto(page.url)
    for tab, size in ((other, "1 GiB"), (page, "3 GiB")):
        tab.get_by_label("Size").fill(size)
        tab.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Somebody else changed this tier while this page was open")).to_be_visible()
    other.reload()
    expect(field(other, "Disk", "desired")).to_have_text("1 GiB")


def test_a_tier_is_cleared_after_its_content_was_shown_and_the_others_keep_theirs(page: Page, engine: None) -> None:
    open_list(page)
    gpu_before = field(page, "GPU", "resident_tokens").inner_text()
    page.get_by_role("link", name="Clear CPU DRAM of local").click()
    held = page.get_by_text(re.compile(r"It now holds \d+ blocks, .* resident tokens"))
    expect(held).to_be_visible()
    page.get_by_role("button", name="Clear CPU DRAM").click()
    expect(page.get_by_text(re.compile(r"the engine was asked to drop \d+ blocks"))).to_be_visible()
    expect(field(page, "CPU DRAM", "resident_tokens")).to_have_text("0")
    expect(field(page, "CPU DRAM", "last_change")).to_contain_text(re.compile(r"clear: \d+ blocks dropped, by admin"))
    expect(field(page, "GPU", "resident_tokens")).to_have_text(gpu_before)


def test_a_new_api_key_is_shown_once(page: Page) -> None:
    page.goto("/admin/dashboard/apikey/add/")
    page.get_by_label("Name").fill("browser")
    page.get_by_role("button", name="Save", exact=True).click()
    plain = page.get_by_label("The API key").input_value()
    assert plain.startswith("ts-")
    page.get_by_role("link", name="I have copied it").click()
    assert plain not in page.content()


@pytest.mark.parametrize("width", [1400, 1024, 390])
@pytest.mark.parametrize("path", ["/admin/", LIST])
def test_every_button_of_the_tiers_is_in_sight_without_scrolling_sideways(
    page: Page, engine: None, path: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_list(page)
    page.goto(path)
    for name in ("Change Disk of local", "Clear Disk of local"):
        box = page.get_by_role("link", name=name).bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    if width == 1400 and path == LIST:
        expect(page.get_by_role("navigation", name="Sidebar")).to_be_visible()


def test_a_size_without_its_unit_is_asked_about_before_it_is_saved(page: Page, engine: None) -> None:
    open_list(page)
    page.get_by_role("link", name="Change Disk of local").click()
    page.get_by_label("Size").fill("1 MiB")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("what the tier then has no room for is dropped")).to_be_visible()
    page.get_by_label("Yes, make it so much smaller").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The engine applies it within two seconds.")).to_be_visible()
    page.get_by_role("link", name="History").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="1 MiB", exact=True)).first
    expect(row.locator("b")).to_have_text(re.compile("^▼ ÷ "))


def test_on_a_phone_only_the_tables_scroll_sideways(page: Page, engine: None) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_list(page)
    for path in ("/admin/", LIST, "/admin/dashboard/source/", "/admin/dashboard/source/add/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_a_size_can_be_changed_with_the_keyboard_alone(page: Page, engine: None) -> None:
    open_list(page)
    link = page.get_by_role("link", name="Change GPU of local")
    link.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Size").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("160 MiB")
    page.keyboard.press("Enter")
    expect(field(page, "GPU", "desired")).to_have_text("160 MiB")
