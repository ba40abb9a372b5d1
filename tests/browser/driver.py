"""What drives the pages: a stack whose store can be filled, and Chromium. For browser tests and bench/overview.py."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.stack import Stack

CHROMIUM_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


class SeededStack(Stack):
    """A stack whose store a test fills by one of the functions of tests/browser/seed.py."""

    seeded: tuple[str, ...] = ()

    def seed(self, *names: str) -> None:
        self.seeded = names
        calls = "; ".join(f"seed.{name}()" for name in names)
        self.manage("shell", "--no-imports", "-c", f"from tests.browser import seed; {calls}")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    assert path, "Browser tests need Chromium: install your distribution's package (Debian: apt-get install chromium)."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


def log_in(page: Page, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
