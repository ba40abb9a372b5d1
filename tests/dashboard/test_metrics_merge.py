"""/metrics of the web process: what living engines publish, merged, in the format that the scraper asks for."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard import valkey as names
from dashboard.metrics import merge

HITS = """# HELP tierscope_cached_prompt_tokens_total Prompt tokens that were reused.
# TYPE tierscope_cached_prompt_tokens_total counter
tierscope_cached_prompt_tokens_total{cache_tier="gpu",engine="%s"} %s
# HELP tierscope_inter_token_latency_seconds Seconds between two tokens.
# TYPE tierscope_inter_token_latency_seconds histogram
tierscope_inter_token_latency_seconds_bucket{engine="%s",le="+Inf"} 2.0
tierscope_inter_token_latency_seconds_count{engine="%s"} 2.0
tierscope_inter_token_latency_seconds_sum{engine="%s"} 0.5
"""


def exposition(engine: str, hits: str) -> str:
    return HITS % (engine, hits, engine, engine, engine)


def publish(engine: str, hits: str) -> None:
    told = {"status": "ready", "exposition": exposition(engine, hits)}
    names.client().set(names.engine_key(engine), json.dumps(told))


def scrape(**headers: str) -> Any:
    return Client().get("/metrics", headers=headers)


def samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("engine", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_engines_become_one_family_with_a_help_and_a_type() -> None:
    merged = list(merge({"a": exposition("a", "3.0"), "b": exposition("b", "4.0")}))

    assert [family.name for family in merged] == [
        "tierscope_cached_prompt_tokens",
        "tierscope_inter_token_latency_seconds",
    ]
    assert [(s.labels["engine"], s.value) for s in merged[0].samples] == [("a", 3.0), ("b", 4.0)]


def test_a_missing_engine_label_is_added_and_a_given_one_kept() -> None:
    text = '# TYPE x_total counter\nx_total{cache_tier="gpu"} 1\nx_total{cache_tier="cpu",engine="own"} 2\n'

    assert [s.labels["engine"] for family in merge({"a": text}) for s in family.samples] == ["a", "own"]


@pytest.mark.usefixtures("valkey")
class TestScrape:
    def test_every_living_engine_is_in_it(self) -> None:
        publish("a", "3.0")
        publish("b", "4.0")
        told = samples(scrape().content.decode())

        assert told["tierscope_cached_prompt_tokens_total", "a"] == 3
        assert told["tierscope_cached_prompt_tokens_total", "b"] == 4
        assert told["tierscope_broker_up", ""] == 1

    def test_a_dead_engine_s_series_are_gone(self) -> None:
        publish("a", "3.0")
        names.client().delete(names.engine_key("a"))

        assert ("tierscope_cached_prompt_tokens_total", "a") not in samples(scrape().content.decode())

    def test_an_engine_that_loads_has_no_series_yet(self) -> None:
        names.client().set(names.engine_key("a"), json.dumps({"status": "loading", "exposition": ""}))

        assert scrape().status_code == 200

    def test_the_scraper_chooses_the_format(self) -> None:
        publish("a", "3.0")
        plain = scrape()
        openmetrics = scrape(accept="application/openmetrics-text; version=1.0.0")

        assert plain["Content-Type"].startswith("text/plain; version=0.0.4")
        assert openmetrics["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert openmetrics.content.endswith(b"# EOF\n")

    def test_a_token_is_asked_for_where_one_is_set(self, settings: Any) -> None:
        settings.METRICS_TOKEN = "secret"

        assert scrape().status_code == 401
        assert scrape(authorization="Bearer wrong").status_code == 401
        assert scrape(authorization="Bearer secret").status_code == 200

    @pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus")
    def test_promtool_has_nothing_to_say(self) -> None:
        publish("a", "3.0")
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=scrape().content, capture_output=True, timeout=30
        )

        assert checked.stdout + checked.stderr == b""
        assert checked.returncode == 0


def test_without_a_broker_the_web_s_own_metrics_are_still_served(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    names.forget_clients()
    told = samples(scrape().content.decode())
    names.forget_clients()

    assert told["tierscope_broker_up", ""] == 0
