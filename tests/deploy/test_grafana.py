"""The provisioned Grafana dashboard asks only for names that Tierscope exports, in PromQL that a Prometheus answers."""

import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboard.charts.palette import LOOKS
from dashboard.engine_metrics import EngineCollector, Exposition
from tests.e2e.prometheus import Prometheus
from tests.engine.harness import BLOCK_SIZE, Rig
from tiers import LoadChoice, Tier

GRAFANA = Path(__file__).parents[2] / "deploy/grafana"
DASHBOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards/tierscope.json").read_text())
PANELS: dict[str, dict[str, Any]] = {panel["title"]: panel for panel in DASHBOARD["panels"]}
EXPRESSIONS = [target["expr"] for panel in PANELS.values() for target in panel["targets"]]
# What Grafana puts in place of its variables, with scrapes a second apart.
VARIABLES = {"$engine": ".*", "$model_name": ".*", "$__rate_interval": "4s"}
# Of what only a server that fails, or an estimate that says so, counts: rightly nothing here.
EMPTY = "given_up"


def exposition(rig: Rig) -> Exposition:
    return Exposition(EngineCollector(rig.engine.snapshot, engine="e1", model_name="m", block_size=BLOCK_SIZE))


def exported(rig: Rig) -> set[str]:
    families = text_string_to_metric_families(exposition(rig).text())
    return {sample.name for family in families for sample in family.samples}


def test_every_query_uses_names_that_an_engine_exports(rig: Rig) -> None:
    used = {name for expression in EXPRESSIONS for name in re.findall(r"tierscope_\w+", expression)}
    assert used <= exported(rig)


def test_everything_that_an_engine_tells_of_tiers_and_tenants_has_a_panel(rig: Rig) -> None:
    told = {name for name in exported(rig) if re.match("tierscope_(tier|tenant)_", name)}
    used = {name for expression in EXPRESSIONS for name in re.findall(r"tierscope_\w+", expression)}
    # The size is drawn in bytes, a tenant's computed tokens are what its hit rate leaves, and What if draws its curve.
    tenant = {"tierscope_tenant_computed_prompt_tokens_total", "tierscope_tenant_reuse_tokens_total"}
    left_out = {"tierscope_tier_capacity_tokens", *tenant}
    assert {name for name in told - used if not name.endswith(("_count", "_created"))} == left_out


@pytest.mark.parametrize("title", PANELS)
def test_no_rate_is_divided_by_something_that_can_be_zero(title: str) -> None:
    for target in PANELS[title]["targets"]:
        if " / " in target["expr"]:
            assert "> 0)" in target["expr"]


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        box = panel["gridPos"]
        cells = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
        assert not cells & taken, panel["title"]
        assert box["x"] + box["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(PANELS) == len(DASHBOARD["panels"])


def test_every_panel_reads_the_provisioned_source_and_says_what_it_shows() -> None:
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    for panel in PANELS.values():
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {each["uid"] for each in sources} == {source["uid"]}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]


def test_tiers_have_the_colours_of_the_pages() -> None:
    for panel in PANELS.values():
        for override in panel["fieldConfig"]["overrides"]:
            [colour] = [each["value"]["fixedColor"] for each in override["properties"] if each["id"] == "color"]
            assert colour == LOOKS[override["matcher"]["options"]].colour, panel["title"]


@contextmanager
def served(text: Exposition) -> Iterator[str]:
    """host:port of a server that answers with the exposition as it is at that moment."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def busy(rig: Rig, turn: int) -> None:
    """Three prompts by turns, together more than gpu and cpu hold, and new ones between: blocks move everywhere."""
    prompt = [turn % 3] * 80 if turn % 2 else [(7 * turn + place) % 90 for place in range(80)]
    rig.submit(f"r{turn}", prompt, 2, tenant=("common", "a", "b", "c")[turn % 4])
    rig.run()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is missing: apt-get install prometheus")
def test_a_real_prometheus_answers_every_query_with_numbers(rig: Rig, tmp_path: Path) -> None:
    rig.cache.configure(Tier.DISK, load=LoadChoice.WHEN_CHEAPER)
    with served(exposition(rig)) as target, Prometheus(target, tmp_path) as prometheus:
        deadline, turn = time.monotonic() + 60, 0
        missing = EXPRESSIONS
        while missing:
            assert time.monotonic() < deadline, missing
            busy(rig, turn := turn + 1)
            time.sleep(0.05)
            missing = [each for each in missing if EMPTY not in each and not prometheus.query(filled_in(each))]
        for expression in EXPRESSIONS:
            prometheus.query(filled_in(expression))


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression
