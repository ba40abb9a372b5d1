"""The shared Valkey clients: names of keys, one pool a process, and quick answers when nobody is there."""

import pytest
import redis
from django.conf import LazySettings

from dashboard import valkey as names


def test_keys_have_one_prefix_and_one_place_a_part() -> None:
    assert names.engine_key("local") == "ts:engine:local"
    assert names.final_key("local", "b1") == "ts:final:local:b1"
    assert names.stream_key("r") == "ts:stream:r"
    assert names.control_key("local") == "ts:control:local"


def test_a_process_has_one_pool(valkey: str) -> None:
    assert names.client() is names.client()


def test_living_and_ended_engines_are_found(valkey: str) -> None:
    for key in (names.engine_key("b"), names.engine_key("a"), names.final_key("a", "x"), names.stream_key("engine:c")):
        names.client().set(key, "1")
    assert names.engine_keys(names.client()) == ["ts:engine:a", "ts:engine:b"]
    assert names.final_keys(names.client()) == ["ts:final:a:x"]


async def test_an_event_loop_has_one_client(valkey: str) -> None:
    client = names.async_client()
    assert client is names.async_client()
    assert await client.ping()
    await client.aclose()


def test_a_connection_that_the_server_dropped_is_replaced(valkey: str) -> None:
    client = names.client()
    client.ping()
    client.client_kill_filter(_type="normal", skipme=False)
    assert client.ping()


def test_without_a_server_an_answer_comes_at_once_and_not_after_retries(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock?db=0"
    names.forget_clients()
    slept: list[float] = []
    monkeypatch.setattr("redis.retry.sleep", slept.append)
    try:
        with pytest.raises(redis.ConnectionError):
            names.client().ping()
    finally:
        names.forget_clients()
    assert sum(slept) == 0
