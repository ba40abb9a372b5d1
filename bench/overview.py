"""How long the overview takes from a cold browser cache to all in the window drawn, in a real Chromium on loopback.

That is the tiles and four charts; a tenant's charts lie below. The reference is a bare page that holds the same figures
and plotly.js and nothing else: what drawing them costs.
"""

import json
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page

from bench.result import Result, compare
from tests.browser.driver import SeededStack, log_in, running_chromium

ROUNDS = 7
CHARTS = ("tokens", "hit-rate", "ttft", "residency")
PERIOD = "?range=1h"
BAR_MILLISECONDS = 2_000
BARE_BAR = 3.0
VENDOR = Path(__file__).parents[1] / "static" / "vendor"
VIEWPORT: Any = {"width": 1400, "height": 900}
_MARK = "performance.getEntriesByName('charts-in-view-drawn')[0]?.startTime"


def run() -> Iterable[Result]:
    with seeded_stack() as stack, running_chromium() as chromium:
        session, figures = log_in_and_read(chromium, stack)
        with bare_page(figures) as bare_url:
            ours, bare = [], []
            for _ in range(ROUNDS):  # alternating, so that both see the same machine
                ours.append(cold_visit(chromium, stack.base_url + "/" + PERIOD, session))
                bare.append(cold_visit(chromium, bare_url, None))
    name = "overview, cold browser cache: drawn"
    shared: Any = {"ours": median(ours), "unit": "ms", "better": "lower"}
    yield compare(name, reference=BAR_MILLISECONDS, reference_name="the bar, 2 s", bar=1.0, **shared)
    yield compare(name, reference=median(bare), reference_name="a bare plotly page", bar=BARE_BAR, **shared)


@contextmanager
def seeded_stack() -> Iterator[SeededStack]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        stack = SeededStack(Path(folder), engine_app="tests.e2e.scripted_engine")
        try:
            stack.start()
            stack.seed("an_hour")
            yield stack
        finally:
            stack.stop()


def log_in_and_read(chromium: Browser, stack: SeededStack) -> tuple[Any, list[Any]]:
    """The logged-in session, and the figures that the page will draw."""
    context = chromium.new_context(base_url=stack.base_url)
    log_in(context.new_page(), stack.admin_password)
    figures = [context.request.get(f"/api/charts/{name}.json{PERIOD}").json()["figure"] for name in CHARTS]
    session = context.storage_state()
    context.close()
    return session, figures


@contextmanager
def bare_page(figures: list[Any]) -> Iterator[str]:
    """Serves plotly.js and the figures, nothing else. The page's address."""
    (script,) = VENDOR.glob("plotly-*.js")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / script.name).write_bytes(script.read_bytes())
        (root / "index.html").write_text(_bare_html(script.name, figures))
        handler = partial(_Quiet, directory=folder)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


def _bare_html(script: str, figures: list[Any]) -> str:
    return f"""<!doctype html><script src="{script}"></script><body><script>
      const figures = {json.dumps(figures)};
      Promise.all(figures.map((figure) => {{
        const element = document.body.appendChild(document.createElement("div"));
        element.style.height = "290px";
        return Plotly.newPlot(element, figure.data, figure.layout);
      }})).then(() => {{
        performance.mark("charts-in-view-drawn");
        document.body.dataset.ready = "true";
      }});
    </script>"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def cold_visit(chromium: Browser, url: str, session: Any) -> float:
    """Milliseconds from the start of the navigation to the last chart; a new context has an empty cache."""
    context = chromium.new_context(storage_state=session, viewport=VIEWPORT)
    page: Page = context.new_page()
    page.goto(url, wait_until="commit")
    page.wait_for_selector("body[data-ready]", timeout=30_000)
    milliseconds = float(page.evaluate(_MARK))
    context.close()
    return milliseconds
