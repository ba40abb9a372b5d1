"""What drives the pages: a stack whose store can be filled, and Chromium. For browser tests and bench/overview.py."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.stack import ROOT, Stack

CHROMIUM_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
# Pages of one window in one renderer, which knows our scripts already, and none started in advance for the next page:
# 1.07 s of CPU for an overview instead of 1.66, as long as one page of the window stays open.
SHARED_RENDERER = ["--process-per-site", "--disable-features=SpareRendererForSitePerProcess"]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


class SeededStack(Stack):
    """A stack whose store a test fills by one of the functions of tests/browser/seed.py.

    One process fills it for all tests: starting it takes longer than what it does.
    """

    seeded: tuple[str, ...] = ()
    _seeding: subprocess.Popen[str] | None = None

    def seed(self, *names: str) -> None:
        self.seeded = names
        if self._seeding is None:
            self._seeding = self._start_seeding()
        for name in names:
            print(name, file=self._seeding.stdin, flush=True)
            said = self._seeding.stdout.readline() if self._seeding.stdout else ""
            assert said == f"{name}\n", f"{name} was not stored; {self.log('seeding')} says why"

    def stop(self) -> None:
        if self._seeding is not None:
            self._seeding.communicate(timeout=20)
        super().stop()

    def _start_seeding(self) -> subprocess.Popen[str]:
        argv = [
            sys.executable,
            "manage.py",
            "shell",
            "--no-imports",
            "-c",
            "from tests.browser import seed; seed.serve()",
        ]
        with self.log("seeding").open("w") as log:
            pipe = subprocess.PIPE
            return subprocess.Popen(argv, cwd=ROOT, env=self.env, stdin=pipe, stdout=pipe, stderr=log, text=True)


@contextmanager
def running_chromium(*more: str) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    assert path, "Browser tests need Chromium: install your distribution's package (Debian: apt-get install chromium)."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_ARGUMENTS, *more])
        yield browser
        browser.close()


def log_in(page: Page, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
