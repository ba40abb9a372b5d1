"""The sample traffic: its plan, its sender against a real HTTP client, its task against a real Valkey."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.conf import settings

from dashboard import sample_traffic
from dashboard.sample_plan import plan
from dashboard.sample_sender import Sender, SendError
from dashboard.valkey import SAMPLE_TRAFFIC_LOCK, client
from tests.dashboard.amounts import AmountStore


class Api:
    """Answers like /v1 does, and keeps what it was asked."""

    def __init__(self, statuses: Iterator[int] | None = None) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.statuses = statuses or iter(lambda: 200, None)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        status = next(self.statuses)
        if status != 200:
            return httpx.Response(status, json={"error": {"message": "no"}})
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "smol"}]})
        self.bodies.append(json.loads(request.content))
        answer = f"answer {len(self.bodies)}"
        return httpx.Response(200, json={"choices": [{"message": {"content": answer}}]})


def sender(api: Callable[[httpx.Request], httpx.Response]) -> Sender:
    transport = httpx.MockTransport(api)
    return Sender(httpx.Client(transport=transport, base_url="http://test"), sleep=lambda seconds: None)


def test_the_plan_is_the_same_for_the_same_seed_and_new_for_another() -> None:
    assert plan(3) == plan(3)
    assert not {turn.instructions for turn in plan(3)} & {turn.instructions for turn in plan(4)}


def test_users_share_their_instructions_and_nobody_repeats_a_message() -> None:
    turns = plan()
    assert len({turn.instructions for turn in turns}) == 3
    assert len({turn.conversation for turn in turns}) > 10
    assert len({turn.message for turn in turns}) == len(turns)


def test_every_turn_is_sent_after_all_that_was_said_before_it() -> None:
    api = Api()
    sent: list[int] = []
    turns = plan()
    assert sender(api).send(turns, "smol", sent.append) == len(turns)
    assert sent == list(range(1, len(turns) + 1))
    for number, (turn, body) in enumerate(zip(turns, api.bodies, strict=True)):
        earlier = [i for i in range(number) if turns[i].conversation == turn.conversation]
        said = [text for i in earlier for text in (turns[i].message, f"answer {i + 1}")]
        assert [message["content"] for message in body["messages"]] == [turn.instructions, *said, turn.message]


def test_a_busy_engine_is_asked_again() -> None:
    api = Api(iter([503, 429, 200]))
    assert sender(api).send(plan()[:1], "smol", lambda sent: None) == 1


def test_a_revoked_key_ends_it_with_a_sentence() -> None:
    with pytest.raises(SendError, match="revoked"):
        sender(Api(iter([401]))).wait_for_model(5)


def test_an_engine_that_stays_away_ends_it_with_a_sentence() -> None:
    with pytest.raises(SendError, match="not there for 30 s"):
        sender(Api(iter(lambda: 503, None))).send(plan()[:1], "smol", lambda sent: None)


def test_a_web_process_that_is_gone_ends_it_with_a_sentence() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(SendError, match="cannot be reached"):
        sender(gone).send(plan()[:1], "smol", lambda sent: None)


def test_a_model_that_never_comes_ends_it_with_a_sentence() -> None:
    now = iter(range(100))
    waiting = Sender(
        httpx.Client(transport=httpx.MockTransport(Api(iter(lambda: 503, None))), base_url="http://test"),
        clock=lambda: float(next(now)),
        sleep=lambda seconds: None,
    )
    with pytest.raises(SendError, match="no model was ready within 5 s"):
        waiting.wait_for_model(5)


def test_a_slow_machine_is_not_kept_busy_for_ever() -> None:
    sent: list[int] = []
    now = iter(range(0, 10_000, 100))
    slow = Sender(
        httpx.Client(transport=httpx.MockTransport(Api()), base_url="http://test"), clock=lambda: float(next(now))
    )
    with pytest.raises(SendError, match="300 s are over"):
        slow.send(plan(), "smol", sent.append)
    assert sent == [1, 2, 3]


@pytest.fixture
def key_file() -> Iterator[Path]:
    path = settings.TIERSCOPE_HOME / "api-key"
    path.write_text("ts-test\n")
    yield path
    path.unlink(missing_ok=True)


def test_a_run_is_queued_once_while_it_runs(valkey: str, key_file: Path) -> None:
    sample_traffic.start()
    sample_traffic.start()
    assert client().llen("default") == 1
    state = sample_traffic.progress()
    assert state == {"sent": 0, "total": len(plan()), "message": "waiting for a worker", "is_running": True}


def test_a_run_needs_its_key(valkey: str) -> None:
    with pytest.raises(ValueError, match="api-key"):
        sample_traffic.start()


def test_nothing_is_known_before_the_first_run(valkey: str) -> None:
    assert sample_traffic.progress() is None


def test_the_task_tells_how_it_went_and_frees_the_next_run(
    valkey: str, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = httpx.MockTransport(Api())
    monkeypatch.setattr(sample_traffic, "api_client", lambda: httpx.Client(transport=transport, base_url="http://test"))
    client().set(SAMPLE_TRAFFIC_LOCK, "1", ex=60)
    num_turns = len(plan())
    assert sample_traffic.send_sample_traffic() == f"done, {num_turns} requests sent"
    state = sample_traffic.progress()
    assert state is not None
    assert (state["sent"], state["total"], state["is_running"]) == (num_turns, num_turns, False)


@pytest.mark.django_db
def test_it_starts_by_itself_until_a_prompt_was_recorded() -> None:
    store, now = AmountStore(), int(time.time()) // 10 * 10
    store.tell(now - 7 * 86_400, {("scrapes", "", ""): 1, ("prompt_tokens", "", ""): 0})
    assert sample_traffic.is_first_start()
    store.tell(now - 86_400, {("prompt_tokens", "", ""): 16})
    assert not sample_traffic.is_first_start()


def test_a_run_that_a_killed_worker_had_is_begun_again_later(valkey: str, key_file: Path) -> None:
    client().set(SAMPLE_TRAFFIC_LOCK, "1", ex=60)
    queues = SimpleNamespace(consume_from={"default": None})
    worker = SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=queues)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_traffic, "is_first_start", lambda: True)
        sample_traffic.start_with_an_empty_database(sender=worker)
        (message,) = client().lrange("default", 0, -1)
        headers = json.loads(message)["headers"]
        assert headers["task"] == "dashboard.tasks.start_if_nothing_was_asked"
        assert headers["eta"]
        client().delete(SAMPLE_TRAFFIC_LOCK)
        sample_traffic.start_if_nothing_was_asked()
    assert client().llen("default") == 2


def test_a_run_ends_when_its_worker_is_stopped() -> None:
    stops = iter([False, False, True])
    stopped = Sender(
        httpx.Client(transport=httpx.MockTransport(Api()), base_url="http://test"), is_stopping=lambda: next(stops)
    )
    sent: list[int] = []
    with pytest.raises(SendError, match="the worker was stopped"):
        stopped.send(plan(), "smol", sent.append)
    assert sent == [1, 2, 3]


def test_a_stopped_worker_waits_for_no_model() -> None:
    waiting = Sender(
        httpx.Client(transport=httpx.MockTransport(Api(iter(lambda: 503, None))), base_url="http://test"),
        sleep=lambda seconds: pytest.fail("it waits"),
        is_stopping=lambda: True,
    )
    with pytest.raises(SendError, match="the worker was stopped"):
        waiting.wait_for_model(5)


@pytest.mark.django_db
def test_a_variable_turns_it_off(settings: Any) -> None:
    settings.SAMPLE_TRAFFIC = False
    assert not sample_traffic.is_first_start()
