"""The task's half of a request: take the job once, write its events, log it, whatever goes wrong."""

import asyncio
import json
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
import redis

from dashboard import jobs
from dashboard import valkey as names
from dashboard.engine_relay import HostError, serve
from dashboard.jobs import Job
from dashboard.models import RequestLog
from dashboard.services.api_keys import create_api_key
from dashboard.streams import Event
from tests.e2e.scripted_engine import ScriptedHost

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@pytest.fixture
def host() -> ScriptedHost:
    return ScriptedHost("local")


def job(request_id: str = "r", **fields: Any) -> Job:
    script = json.dumps(fields.pop("script", {}))
    return Job(request_id, "scripted", {"max_tokens": 3}, time.time(), prompt=script, **fields)


def sent(a_job: Job) -> Job:
    asyncio.run(_put(a_job))
    return a_job


async def _put(a_job: Job) -> None:
    await jobs.put(names.async_client(), a_job, "local", ttl_seconds=60)


def events(a_job: Job) -> list[Event]:
    connection: Any = names.client()
    return [json.loads(fields["event"]) for _, fields in connection.xrange(names.stream_key(a_job.run_id))]


def failing(error: Exception) -> Callable[[Job], Generator[Event, None, None]]:
    def generate(job: Job) -> Generator[Event, None, None]:
        yield from ()
        raise error

    return generate


def test_a_job_s_events_are_written_and_it_is_logged(host: ScriptedHost) -> None:
    key, _ = create_api_key("ci")
    served = sent(job(api_key_id=key.pk))
    serve(host, served.run_id, names.client())

    assert [event["type"] for event in events(served)] == ["started", "token", "token", "token", "done"]
    assert events(served)[0]["boot_id"] == host.boot_id
    row = RequestLog.objects.get()
    assert (row.request_id, row.api_key, row.engine, row.model_name) == ("r", key, "local", "scripted")
    assert (row.prompt_tokens, row.hit_gpu_tokens, row.hit_cpu_tokens, row.hit_disk_tokens) == (100, 48, 16, 16)
    assert (row.computed_tokens, row.generated_tokens, row.slowest_tier) == (20, 3, "disk")
    assert row.finished_at >= row.received_at


def test_a_message_that_comes_twice_is_served_once(host: ScriptedHost) -> None:
    served = sent(job())
    serve(host, served.run_id, names.client())
    serve(host, served.run_id, names.client())

    assert sum(event["type"] == "done" for event in events(served)) == 1
    assert RequestLog.objects.count() == 1


def test_each_run_of_a_request_has_its_row_for_the_engine_counted_both(host: ScriptedHost) -> None:
    for attempt in (1, 2):
        serve(host, sent(job(attempt=attempt, script={"words": attempt})).run_id, names.client())

    assert dict(RequestLog.objects.values_list("request_id", "generated_tokens")) == {"r": 1, "r.2": 2}
    assert sum(RequestLog.objects.values_list("generated_tokens", flat=True)) == host.num_words


def test_a_refusal_is_told_and_not_logged(host: ScriptedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "generate", failing(HostError(400, "Too long.", code="invalid_request")))
    served = sent(job())
    serve(host, served.run_id, names.client())

    assert events(served)[-1] == {
        "type": "error",
        "status": 400,
        "message": "Too long.",
        "code": "invalid_request",
        "is_retriable": False,
    }
    assert RequestLog.objects.count() == 0


def test_an_unexpected_failure_is_a_500_without_its_details(
    host: ScriptedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "generate", failing(ZeroDivisionError("secret")))
    served = sent(job())
    serve(host, served.run_id, names.client())

    assert events(served)[-1]["status"] == 500
    assert "secret" not in events(served)[-1]["message"]


def test_an_abort_that_nobody_heard_is_seen_within_a_beat(host: ScriptedHost) -> None:
    served = sent(job(script={"wait": 30}))
    names.client().set(names.abort_key(served.run_id), "1")
    serve(host, served.run_id, names.client())

    assert events(served)[-1]["finish_reason"] == "abort"


def test_a_valkey_that_goes_away_closes_the_generation(host: ScriptedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise redis.ConnectionError

    served = sent(job(script={"words": 50}))
    monkeypatch.setattr("dashboard.streams.StreamWriter.write", broken)
    serve(host, served.run_id, names.client())

    assert host.running == set()
    assert host.num_words == 0


def test_a_log_that_cannot_be_written_does_not_fail_the_request(
    host: ScriptedHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from django.db import OperationalError

    def locked(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(RequestLog.objects, "update_or_create", locked)
    served = sent(job())
    serve(host, served.run_id, names.client())

    assert events(served)[-1]["type"] == "done"
    assert "missing in the request log" in caplog.text


def test_a_key_that_was_deleted_meanwhile_leaves_the_log_without_one(host: ScriptedHost) -> None:
    serve(host, sent(job(api_key_id=999)).run_id, names.client())

    assert RequestLog.objects.get().api_key is None
