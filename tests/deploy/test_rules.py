"""Recording and alert rules: what promtool says of them, names that are exported, and a runbook for every alert."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.exported import exported_names

DEPLOY = Path(__file__).parents[2] / "deploy/prometheus"
DOCS = DEPLOY.parents[1]
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((DEPLOY / "rules.yml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")


@needs_promtool
@pytest.mark.parametrize("argv", [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]])
def test_promtool_finds_nothing_wrong(argv: list[str]) -> None:
    result = subprocess.run(["promtool", *argv], cwd=DEPLOY, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_is_tested_and_has_a_section_in_the_runbook() -> None:
    tested = yaml.safe_load((DEPLOY / "rules_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tested for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {alert["alert"] for alert in ALERTS}
    for alert in ALERTS:
        file, _, anchor = alert["annotations"]["runbook"].partition("#")
        titles = re.findall(r"^## (.+)$", (DOCS / file).read_text(), re.MULTILINE)
        assert anchor in {title.lower().replace(" ", "-") for title in titles}


def test_every_rule_asks_for_names_that_are_exported(tmp_path: Path) -> None:
    asked = {name for rule in RULES for name in re.findall(r"tierscope_\w+", rule["expr"])}
    assert asked <= exported_names(tmp_path) | {"tierscope_source_up"}


def test_the_prometheus_of_the_compose_file_has_the_rules() -> None:
    compose = yaml.safe_load((DOCS / "docker-compose.yml").read_text())
    assert yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["rule_files"] == ["/etc/prometheus/rules.yml"]
    assert "./deploy/prometheus/rules.yml:/etc/prometheus/rules.yml:ro" in compose["services"]["prometheus"]["volumes"]
