"""The alerts' conditions: what rules_test.yml feeds to promtool is fed to the store, and the same is expected of it."""

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.alert_words import WORDS, labels_of
from dashboard.models import Alert, AlertRule, Source
from dashboard.services.alerts import ensure_rules, evaluate
from tests.dashboard.seeded import Metric, SeededEngine

pytestmark = pytest.mark.django_db

PROMETHEUS = Path(__file__).parents[2] / "deploy/prometheus"
_TESTS: dict[str, Any] = yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())
CASES: list[dict[str, Any]] = _TESTS["tests"]
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
START = 1_800_000_000  # a whole hour
LOOKED_BACK = 100 * 60  # an hour of traffic, and the longest time that a condition has to hold
WEEK = 604_800
SECONDS = {"m": 60, "h": 3_600, "d": 86_400}
COUNTERS = {
    "tierscope_prompt_tokens_total": Metric.PROMPT_TOKENS,
    "tierscope_cached_prompt_tokens_total": Metric.HIT_TOKENS,
    "tierscope_tier_missed_after_eviction_tokens_total": Metric.MISSED_TOKENS,
}
GAUGES = {
    "tierscope_tier_capacity_bytes": Metric.CAPACITY_BYTES,
    "tierscope_tier_used_bytes": Metric.USED_BYTES,
    "tierscope_tier_up": Metric.UP,
}


def seconds(text: str) -> int:
    return int(text[:-1]) * SECONDS[text[-1]]


def values(notation: str) -> Iterator[float]:
    """promtool's: `1`, `1x5` (six times), `0+60x120` (and 120 more, 60 apart)."""
    for part in notation.split():
        first, step, times = re.fullmatch(r"(\d+)(?:\+(\d+))?(?:x(\d+))?", part).groups(default="0")  # type: ignore[union-attr]
        yield from (float(first) + float(step) * number for number in range(int(times) + 1))


def increases(told: list[float]) -> list[int]:
    """A smaller value is a restart."""
    pairs = itertools.pairwise(told)
    return [0, *(int(now - before if now >= before else now) for before, now in pairs)]


class Replay:
    """The input series of one case, in the store as the recorder would have put them there; sources as they stood."""

    def __init__(self, case: dict[str, Any], until: int) -> None:
        self.step = seconds(case["interval"])
        self.sources: dict[str, list[float]] = {}
        wanted = (
            range(until - LOOKED_BACK - 3_600, until + 1),
            range(until - WEEK - 2 * LOOKED_BACK, until - WEEK + 1),
        )
        engines: dict[tuple[str, str], SeededEngine] = {}
        for given in case["input_series"]:
            name, text = re.fullmatch(r"(\w+)\{(.*)\}", given["series"]).groups()  # type: ignore[union-attr]
            labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
            told = list(values(given["values"]))
            if name == "tierscope_source_up":
                self.sources[labels["source"]] = told
                continue
            place = labels["engine"], labels["model_name"]
            engine = engines.setdefault(place, SeededEngine(*place, source_name=f"of-{place[0]}"))
            metric = COUNTERS.get(name) or GAUGES[name]
            for index, value in enumerate(increases(told) if name in COUNTERS else map(int, told)):
                at = index * self.step - (self.step // 2 if name in COUNTERS else 0)
                if any(at in each for each in wanted):
                    engine.add(START + at, metric, value, tier=labels.get("cache_tier", ""))
        for engine in engines.values():
            engine.store(START)
        Source.objects.update(is_enabled=False)
        for name in self.sources:
            Source.objects.create(name=name, kind="vllm", interval_seconds=10)

    def at(self, moment: int) -> datetime:
        """Sources as they stood then."""
        now = datetime.fromtimestamp(START + moment, UTC)
        for name, told in self.sources.items():
            is_up = told[min(moment // self.step, len(told) - 1)] == 1
            ok_at = now if is_up else now - timedelta(hours=1)
            Source.objects.filter(name=name).update(last_ok_at=ok_at, last_scraped_at=now)
        return now


def looks(replay: Replay, until: int) -> None:
    """As often as promtool does."""
    every = seconds(_TESTS["evaluation_interval"])
    for moment in range(max(0, until - LOOKED_BACK) // every * every, until + 1, every):
        evaluate(replay.at(moment))


EXPECTED = [(case, wanted) for case in CASES for wanted in case["alert_rule_test"]]


@pytest.mark.parametrize(
    ("case", "wanted"), EXPECTED, ids=[f"{wanted['alertname']} at {wanted['eval_time']}" for _, wanted in EXPECTED]
)
def test_what_fires_in_prometheus_fires_here(case: dict[str, Any], wanted: dict[str, Any]) -> None:
    until = seconds(wanted["eval_time"])
    ensure_rules()
    kinds = {words.name: kind for kind, words in WORDS.items()}
    AlertRule.objects.exclude(kind=kinds[wanted["alertname"]]).update(
        is_enabled=False
    )  # what it is not about costs time
    looks(Replay(case, until), until)
    firing = [
        alert for alert in Alert.objects.filter(state="firing") if WORDS[alert.rule.kind].name == wanted["alertname"]
    ]
    assert [
        {
            "exp_labels": {k: v for k, v in labels_of(alert.rule.kind, alert.labels).items() if k != "alertname"},
            "exp_annotations": {"summary": alert.summary, "runbook": WORDS[alert.rule.kind].runbook},
        }
        for alert in firing
    ] == wanted["exp_alerts"]


def test_each_rule_of_prometheus_is_one_of_ours_with_the_same_patience() -> None:
    rules = {WORDS[rule.kind].name: rule for rule in ensure_rules()}
    assert set(rules) == set(RULES) == {words.name for words in WORDS.values()}
    for name, rule in rules.items():
        assert timedelta(minutes=rule.for_minutes) == timedelta(seconds=seconds(RULES[name]["for"]))
        assert WORDS[rule.kind].runbook == RULES[name]["annotations"]["runbook"]
        if rule.threshold is not None:
            assert str(rule.threshold) in RULES[name]["expr"]


def test_rules_are_made_once_and_keep_what_an_admin_made_of_them() -> None:
    ensure_rules()
    AlertRule.objects.filter(kind="slow_tier").update(threshold=0.9)
    assert len(ensure_rules()) == len(WORDS) == AlertRule.objects.count()
    assert AlertRule.objects.get(kind="slow_tier").threshold == 0.9
