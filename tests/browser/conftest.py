"""A real Chromium against the real web process: Valkey, web and a scripted engine worker on a home of their own.

Playwright keeps an event loop running in the thread that started it, which asynchronous tests and Django's database
would stumble over: it ends with the last browser test, which come one after the other (tests/distribution.py).
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from tests.browser.driver import SHARED_RENDERER, SeededStack, log_in, running_chromium

_browsing = ExitStack()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None]:
    yield
    if nextitem is None or "/browser/" not in str(nextitem.path):
        _browsing.close()


@pytest.fixture(scope="session")
def pages_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStack]:
    stack = SeededStack(tmp_path_factory.mktemp("pages"), engine_app="tests.e2e.scripted_engine")
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def seeded(pages_stack: SeededStack) -> SeededStack:
    """The stack with an hour of known traffic; made anew only after a test stored something else."""
    if pages_stack.seeded != ("an_hour",):
        pages_stack.seed("an_hour")
    return pages_stack


FLEET = ("an_hour", "a_watched_vllm", "one_more_request")


@pytest.fixture
def many(pages_stack: SeededStack) -> SeededStack:
    """Three engines: ours with an hour of known traffic, another of ours, and a watched one that tells little."""
    if pages_stack.seeded != FLEET:
        pages_stack.seed(*FLEET)
    return pages_stack


@pytest.fixture(scope="session")
def chromium() -> Browser:
    return _browsing.enter_context(running_chromium(*SHARED_RENDERER))


@pytest.fixture(scope="session")
def window(chromium: Browser, pages_stack: SeededStack) -> BrowserContext:
    """The admin's browser window: what one test has fetched, the next finds in its cache, as people do."""
    context = chromium.new_context(base_url=pages_stack.base_url)
    page = context.new_page()
    log_in(page, pages_stack.admin_password)
    page.goto("/requests/")  # stays open, see SHARED_RENDERER
    return context


@dataclass
class Watch:
    """What a page must never do: write errors to the console, or ask another host."""

    host: str
    problems: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _see(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.netloc != self.host:
            self.problems.append(f"asked another host: {request.url}")


@dataclass
class Visits:
    """Opens pages, all of them watched, in the logged-in admin's window or in another (`alone`, or with `options`)."""

    stack: SeededStack
    window: BrowserContext
    watch: Watch
    opened: list[Page] = field(default_factory=list)

    def open(self, path: str, *, width: int = 1400, height: int = 900, alone: bool = False, **options: Any) -> Page:
        page = (self._other_window(**options) if alone or options else self.window).new_page()
        self.opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(15_000)
        self.watch.over(page)
        page.goto(path)
        return page

    def _other_window(self, *, logged_in: bool = True, **options: Any) -> BrowserContext:
        browser, state = self.window.browser, self.window.storage_state() if logged_in else None
        assert browser is not None
        return browser.new_context(base_url=self.stack.base_url, storage_state=state, **options)

    def close(self) -> None:
        for page in self.opened:
            page.evaluate("localStorage.clear()")
            page.close()
            if page.context != self.window:
                page.context.close()

    def overview(self, query: str = "?range=1h", **options: Any) -> Page:
        """The overview, once all of it is drawn."""
        page = self.open(f"/{query}", **options)
        page.wait_for_selector("body[data-ready]")
        return page


@pytest.fixture
def visits(window: BrowserContext, pages_stack: SeededStack) -> Iterator[Visits]:
    """At the end nothing may have gone wrong in any page; who provokes an error takes it from `watch.problems`."""
    watch = Watch(urlsplit(pages_stack.base_url).netloc)
    visits = Visits(pages_stack, window, watch)
    yield visits
    visits.close()
    assert watch.problems == []
