"""One engine's page: what it is, its tokens as everywhere, its tiers, its alerts, and what it does not tell."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import valkey as names
from dashboard.charts.engine_words import cannot_tell
from dashboard.models import Alert, AlertRule, EngineRun, Source, TierSetting
from dashboard.services.recording import record
from tests.dashboard.live_engine import GIB, publish
from tests.dashboard.seeded import MODEL, SeededEngine, counted, lively

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.fixture
def gpu_7(db: None) -> Source:
    """A watched engine of two models, one with a slash in its name as all watched ones have."""
    now = time.time()
    counted("gpu-7/0", hits={"unattributed": 60}, computed=40, now=now)
    counted("gpu-7/0", hits={"unattributed": 1}, computed=9, now=now, model="other")
    Source.objects.update(kind="vllm_old", url="http://gpu-7:8000/metrics", last_error="")
    source = Source.objects.get()
    EngineRun.objects.create(source=source, engine="gpu-7/0", read_at=datetime.fromtimestamp(now - 12, UTC))
    return source


def told(browser: Client, query: str) -> dict[str, Any]:
    answer = browser.get(f"/api/engine.json?range=15m&{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def facts(answer: dict[str, Any]) -> dict[str, str]:
    return {fact["name"]: fact["value"] for fact in answer["facts"]}


def test_a_replica_that_its_source_does_not_tell_any_more_is_gone(browser: Client, gpu_7: Source) -> None:
    assert facts(told(browser, "engine=gpu-7/0"))["State"].startswith("up. ")
    EngineRun.objects.update(read_at=datetime.fromtimestamp(time.time() - 120, UTC))
    assert facts(told(browser, "engine=gpu-7/0"))["State"] == "gone. Its source is read and does not tell it any more."
    states = {row["engine"]: row["state"] for row in browser.get("/api/fleet.json?range=15m").json()["rows"]}
    assert states == {"gpu-7/0": "gone"}


def test_samples_of_a_prometheus_may_be_some_minutes_old(browser: Client, gpu_7: Source) -> None:
    Source.objects.update(selector='{instance="gpu-7"}')
    EngineRun.objects.update(read_at=datetime.fromtimestamp(time.time() - 120, UTC))
    assert facts(told(browser, "engine=gpu-7/0"))["State"].startswith("up. ")


def test_the_page_has_its_name_in_its_address_and_leads_to_the_others(browser: Client, gpu_7: Source) -> None:
    page = browser.get("/engines/gpu-7/0/").content.decode()
    assert "<h1>gpu-7/0</h1>" in page
    assert 'data-engine="gpu-7/0"' in page
    assert f"<option>{MODEL}</option>" in page
    assert "/requests/?engine=" not in page  # the log has those of our own engines
    assert 'id="engine"' not in page


def test_a_watched_engine_says_what_it_is_and_when_it_was_read(browser: Client, gpu_7: Source) -> None:
    answer = told(browser, "engine=gpu-7/0")
    assert facts(answer) == {
        "State": f"up. {facts(answer)['State'][4:]}",
        "Kind": "vLLM before 0.32",
        "Models": f"{MODEL}, other",
        "Last reading": "12 seconds ago",
        "Read from": "gpu-7:8000, source gpu-7",
        "Read every": "10 seconds",
    }
    assert answer["state"] == "up"


def test_its_tokens_are_those_of_every_other_page(browser: Client, gpu_7: Source) -> None:
    answer = told(browser, "engine=gpu-7/0")
    tiles = browser.get("/api/tiles.json?range=15m&engine=gpu-7/0").json()
    assert {name: answer[name] for name in ("origins", "prompt_tokens")} == {
        name: tiles[name] for name in ("origins", "prompt_tokens")
    }
    assert answer["prompt_tokens"] == 110
    assert told(browser, "engine=gpu-7/0&model=other")["prompt_tokens"] == 10
    assert answer["lately"] == (
        "Last 5 minutes: 55.5 % hit rate of 110 prompt tokens (unattributed 55.5 %, computed 44.5 %)."
    )


def test_what_it_does_not_tell_is_said_in_words(browser: Client, gpu_7: Source) -> None:
    answer = told(browser, "engine=gpu-7/0")
    assert "In which tier its hits lay: all are unattributed." in answer["cannot_tell"]
    assert "Times to first token." in answer["cannot_tell"]
    assert answer["note"].startswith("This build tells the tokens hit beyond the gpu tier")
    assert answer["sizes"] == []


def test_our_own_engine_says_what_it_runs_now_and_how_large_its_tiers_are(browser: Client) -> None:
    lively(time.time(), seconds=600).store(time.time())
    publish("local", gpu={"used_bytes": GIB // 2}, cpu={})
    for tier, wish in (("gpu", GIB), ("cpu", 2 * GIB)):
        TierSetting.objects.create(engine="local", cache_tier=tier, desired_bytes=wish, reason="")
    answer = told(browser, "engine=local")
    assert facts(answer)["Requests now"] == "2 running, 1 waiting"
    assert facts(answer)["Kind"] == "one of our own"
    gpu, cpu = answer["sizes"]
    assert (gpu["size"], gpu["used"], gpu["used_percent"]) == ("1 GiB, 23,296 tokens", "512 MiB", 50.0)
    assert (cpu["modes"], cpu["note"]) == ("LRU, write back, loaded always", "Asked for: 2 GiB.")
    assert not [text for text in answer["cannot_tell"] if "requests run" in text]
    assert "/requests/?engine=local" in browser.get("/engines/local/").content.decode()


def test_alerts_that_name_it_or_its_source_are_shown(browser: Client, gpu_7: Source) -> None:
    rule = AlertRule.objects.create(kind="source_stale", for_minutes=5)
    now = datetime.now(UTC)
    for number, labels in enumerate(({"source": "gpu-7"}, {"engine": "gpu-7/0"}, {"source": "gpu-8"})):
        Alert.objects.create(
            rule=rule, labels=labels, fingerprint=str(number), state="firing", summary=str(labels), pending_at=now
        )
    answer = told(browser, "engine=gpu-7/0")
    assert [alert["summary"] for alert in answer["alerts"]] == ["{'engine': 'gpu-7/0'}", "{'source': 'gpu-7'}"]
    alerts = browser.get("/api/alerts.json").json()["active"]
    assert {alert["summary"]: alert["engine"] for alert in alerts}["{'source': 'gpu-7'}"] == "gpu-7/0"


def test_an_engine_that_nobody_knows_is_a_page_in_words(browser: Client) -> None:
    page = browser.get("/engines/nobody/<b>/")
    assert (page.status_code, "There is no engine “nobody/&lt;b&gt;”" in page.content.decode()) == (404, True)
    refused = browser.get("/api/engine.json?engine=nobody")
    assert (refused.status_code, refused.json()["error"]) == (400, "There is no engine “nobody”.")
    assert browser.get("/api/engine.json").status_code == 400


def test_an_engine_without_a_hit_rate_has_none_anywhere(browser: Client) -> None:
    now = time.time()
    counted("kv/0", hits={}, computed=None, now=now)
    assert told(browser, "engine=kv/0")["lately"] == "Nothing was asked in the last 5 minutes."
    llama = SeededEngine(engine="llama/0", source_name="llama")
    llama.scrape(now - 50, {}, {})
    llama.add(now - 50, "prompt_tokens", 70)
    llama.store(now)
    answer = told(browser, "engine=llama/0")
    assert [tile["value"] for tile in answer["tiles"][:3]] == ["70", "–", "–"]
    assert answer["origins"] == []
    assert answer["lately"] == "Last 5 minutes: 70 prompt tokens; what was hit is not told."
    figure = browser.get("/api/charts/hit-rate.json?range=15m&engine=llama/0").json()["figure"]
    assert all(value is None for trace in figure["data"] for value in trace["y"])


def test_an_engine_that_tells_everything_lacks_nothing() -> None:
    told = {("prompt_tokens", ""), ("hit_tokens", "gpu"), ("computed_tokens", ""), ("requests", ""), ("ttft", "gpu")}
    told |= {("capacity_bytes", "gpu"), ("used_bytes", "gpu"), ("missed_tokens", "gpu"), ("load_times", "cpu")}
    assert cannot_tell(told, is_own=True) == []
    assert len(cannot_tell(set(), is_own=False)) == 10


def test_an_engine_whose_kind_is_to_be_detected_says_which_it_was(browser: Client) -> None:
    source = Source.objects.create(name="new", kind="auto", url="http://new:8000/metrics")
    text = (Path(__file__).parent / "expositions/vllm-0.32.0-multitier-edited.txt").read_text()
    assert record(source.pk, now=timezone.now(), connection=names.client(), fetch_text=lambda target: text)
    (row,) = browser.get("/api/fleet.json").json()["rows"]
    assert row["kind"] == "vllm"
    assert facts(told(browser, f"engine={row['engine']}"))["Kind"] == "vLLM 0.32 or newer"
    Source.objects.update(kind="vllm_old")
    assert Source.objects.get().read_as == "vllm_old"
