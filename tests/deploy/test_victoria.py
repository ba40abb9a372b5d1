"""Both dashboards and the rules on a real VictoriaMetrics: every query has an answer, and vmalert takes the rules."""

import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.deploy import test_grafana as ours
from tests.deploy import test_grafana_engines as engines
from tests.deploy.test_grafana import busy, exposition
from tests.deploy.test_rules import DEPLOY, RULES
from tests.e2e.victoria import VictoriaMetrics
from tests.engine.harness import Rig
from tiers import LoadChoice, Tier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("victoria-metrics") is None, reason="apt-get install victoria-metrics"),
]
STEP, NUM_STEPS = 15, 40
END = int(time.time()) // 60 * 60 - 600
# All of it: what moves between tiers does so now and then.
VARIABLES = {**ours.VARIABLES, **engines.VARIABLES, "$__rate_interval": "10m"}


def told(text: str, step: int) -> str:
    """A scrape of the past, in what it takes: times in milliseconds."""
    at = END - (NUM_STEPS - step) * STEP
    return "".join(f"{line} {at}000\n" for line in text.splitlines() if line and not line.startswith("#"))


def unanswered(scrapes: Iterable[str], expressions: Iterable[str], folder: Path) -> list[str]:
    with VictoriaMetrics(folder) as victoria:
        victoria.take("".join(told(text, step) for step, text in enumerate(scrapes)))
        return [each for each in expressions if not victoria.query(filled_in(each), END)]


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_every_query_of_our_dashboard_and_every_recording_rule_has_an_answer(rig: Rig, tmp_path: Path) -> None:
    rig.cache.configure(Tier.DISK, load=LoadChoice.WHEN_CHEAPER)

    def scrape(turn: int) -> str:
        for each in (2 * turn, 2 * turn + 1):
            busy(rig, each)
        return exposition(rig).text()

    asked = [*ours.EXPRESSIONS, *(rule["expr"] for rule in RULES if "record" in rule)]
    missing = unanswered(map(scrape, range(NUM_STEPS + 1)), asked, tmp_path)
    assert [each for each in missing if ours.EMPTY not in each] == []


def test_every_query_of_the_dashboard_on_plain_names_has_an_answer(tmp_path: Path) -> None:
    scrapes = (engines.moving(10 * turn) for turn in range(NUM_STEPS + 1))
    missing = unanswered(scrapes, engines.EXPRESSIONS, tmp_path)
    assert [each for each in missing if not any(word in each for word in engines.EMPTY)] == []


def test_vmalert_takes_the_rules() -> None:
    made = subprocess.run(["vmalert", "-dryRun", f"-rule={DEPLOY / 'rules.yml'}"], capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
