"""The dashboard on plain vLLM and SGLang names: it asks for what these engines tell, and Prometheus answers it."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.charts.palette import LOOKS
from dashboard.sources.exposition import parse
from tests.dashboard.serving import Answer, serving
from tests.e2e.prometheus import Prometheus

ROOT = Path(__file__).parents[2]
GRAFANA = ROOT / "deploy/grafana"
EXPOSITIONS = ROOT / "tests/dashboard/expositions"
DASHBOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards/engines.json").read_text())
PANELS: dict[str, dict[str, Any]] = {panel["title"]: panel for panel in DASHBOARD["panels"]}
EXPRESSIONS = [target["expr"] for panel in PANELS.values() for target in panel["targets"]]
VARIABLES = {"$model_name": ".*", "$instance": ".*", "$__rate_interval": "4s"}
TEXTS = [
    (EXPOSITIONS / name).read_text() for name in ("vllm-0.32.0-multitier-edited.txt", "sglang-0.5.23-hicache-built.txt")
]
# Of what these texts have none: rightly nothing.
EMPTY = ("MooncakeStore|EICStorage",)


def asked(expression: str) -> set[str]:
    return set(re.findall(r"(?:vllm|sglang):\w+", expression))


def test_every_query_uses_names_that_the_engines_tell() -> None:
    told = set().union(*(set(re.findall(r"^((?:vllm|sglang):\w+)", text, re.MULTILINE)) for text in TEXTS))
    assert set().union(*map(asked, EXPRESSIONS)) <= told


@pytest.mark.parametrize("title", PANELS)
def test_no_rate_is_divided_by_something_that_can_be_zero(title: str) -> None:
    for target in PANELS[title]["targets"]:
        if " / " in target["expr"]:
            assert "> 0)" in target["expr"]


def test_panels_do_not_overlap_say_what_they_show_and_read_the_provisioned_source() -> None:
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        box = panel["gridPos"]
        cells = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
        assert not cells & taken, panel["title"]
        assert box["x"] + box["w"] <= 24
        taken |= cells
        assert panel["description"].endswith(".")
        assert {each["datasource"]["uid"] for each in [panel, *panel["targets"]]} == {source["uid"]}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(PANELS) == len(DASHBOARD["panels"])


def test_tiers_have_the_colours_of_the_pages() -> None:
    for panel in PANELS.values():
        for override in panel["fieldConfig"]["overrides"]:
            [colour] = [each["value"]["fixedColor"] for each in override["properties"] if each["id"] == "color"]
            assert colour == LOOKS[override["matcher"]["options"]].colour, panel["title"]


def moving(turn: int) -> str:
    """Both texts with every counter and bucket grown by the number of the scrape."""
    lines = []
    for line in "\n".join(TEXTS).splitlines():
        name, _, value = line.rpartition(" ")
        is_counter = re.match(r"(?:vllm|sglang):\w+(?:_total|_bucket|_count|_sum)\{", line)
        lines.append(f"{name} {float(value) + turn}" if is_counter else line)
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is missing: apt-get install prometheus")
def test_a_real_prometheus_answers_every_query_with_numbers(tmp_path: Path) -> None:
    num_scrapes = 0

    def answer(path: str) -> Answer:
        nonlocal num_scrapes
        num_scrapes += 1
        return Answer(moving(num_scrapes), {"Content-Type": "text/plain; version=0.0.4"})

    parse(moving(1))
    with serving(answer) as served, Prometheus(served.url.removeprefix("http://"), tmp_path) as prometheus:
        deadline, missing = time.monotonic() + 60, EXPRESSIONS
        while missing:
            assert time.monotonic() < deadline, missing
            time.sleep(0.2)
            wanted = [each for each in missing if not any(word in each for word in EMPTY)]
            missing = [each for each in wanted if not prometheus.query(filled_in(each))]
        for expression in EXPRESSIONS:
            prometheus.query(filled_in(expression))


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression
