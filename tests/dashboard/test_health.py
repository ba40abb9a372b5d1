"""/healthz: open, brief, 503 where a part that an answer needs is down."""

import json
from typing import Any

import pytest
from django.test import Client

from dashboard import valkey as names

pytestmark = pytest.mark.django_db


def publish(status: str) -> None:
    told = {"status": status, "model_name": "m", "progress": ["reading weights", 0.4]}
    names.client().set(names.engine_key("local"), json.dumps(told))


def health() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/healthz")
    return answer.status_code, answer.json()


@pytest.mark.usefixtures("valkey")
def test_everything_up_is_200() -> None:
    publish("ready")
    status, told = health()

    assert status == 200
    assert told["status"] == "ok"
    assert all(told[part]["ok"] for part in ("web", "broker", "database", "engine"))
    assert told["engine"]["engines"]["local"]["model_name"] == "m"


@pytest.mark.usefixtures("valkey")
def test_without_an_engine_it_is_503() -> None:
    status, told = health()

    assert (status, told["status"]) == (503, "down")
    assert told["engine"] == {"ok": False, "engines": {}, "problem": "No engine is ready."}
    assert told["broker"]["ok"]


@pytest.mark.usefixtures("valkey")
def test_an_engine_that_loads_is_not_ready_and_tells_how_far_it_is() -> None:
    publish("loading")
    status, told = health()

    assert status == 503
    engine = told["engine"]["engines"]["local"]
    assert (engine["status"], engine["model_name"], engine["progress"]) == ("loading", "m", "reading weights")


@pytest.mark.usefixtures("valkey")
def test_how_old_the_news_of_an_engine_are_is_told() -> None:
    publish("ready")
    names.client().pexpire(names.engine_key("local"), 2000)
    heard = health()[1]["engine"]["engines"]["local"]["heard_seconds_ago"]
    assert 3.0 <= heard <= 4.0


@pytest.mark.usefixtures("valkey")
def test_a_probe_that_finds_something_down_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert health()[0] == 503
    assert caplog.records == []


def test_without_a_broker_it_is_503_and_says_so(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    names.forget_clients()
    status, told = health()
    names.forget_clients()

    assert status == 503
    assert told["broker"]["problem"].startswith("Valkey cannot be reached")
    assert "nowhere" not in json.dumps(told)
