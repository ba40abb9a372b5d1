"""The publisher: the engine's state once a second, with a time to live, and the last words at a stop."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from dashboard import valkey as names
from dashboard.engine_publisher import Publisher

pytestmark = pytest.mark.usefixtures("valkey")


@pytest.fixture
def told() -> dict[str, Any]:
    return {"status": "ready", "at": 1}


@pytest.fixture
def publisher(valkey: str, told: dict[str, Any]) -> Iterator[Publisher]:
    publisher = Publisher(names.client(), "local", "boot", lambda: told)
    yield publisher
    publisher._stopped.set()


def read(key: str) -> Any:
    return json.loads(str(names.client().get(key) or "null"))


def test_the_state_is_there_with_a_time_to_live(publisher: Publisher, told: dict[str, Any]) -> None:
    publisher.publish()

    assert read(names.engine_key("local")) == read(names.final_key("local", "boot")) == told
    assert 0 < names.client().ttl(names.engine_key("local")) <= names.ENGINE_TTL_SECONDS
    assert names.client().ttl(names.final_key("local", "boot")) > 3000


def test_it_is_renewed_every_second(publisher: Publisher, told: dict[str, Any]) -> None:
    publisher.start()
    told["at"] = 2
    deadline = time.monotonic() + 3
    while read(names.engine_key("local")) != told:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    publisher.stop()


def test_a_stopped_engine_is_gone_and_its_last_words_stay(publisher: Publisher, told: dict[str, Any]) -> None:
    publisher.start()
    told["at"] = 3
    publisher.stop()

    assert read(names.engine_key("local")) is None
    assert read(names.final_key("local", "boot")) == told


def test_a_broken_description_or_broker_is_said_once_and_harms_nothing(
    told: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> dict[str, Any]:
        raise ValueError("no numbers")

    for publisher in (
        Publisher(names.client(), "a", "boot", broken),
        Publisher(redis.Redis.from_url("unix:///nowhere.sock"), "b", "boot", lambda: told),
    ):
        caplog.clear()
        publisher.publish()
        publisher.publish()
        assert len(caplog.records) == 1
