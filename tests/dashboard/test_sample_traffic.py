"""The sample traffic: its plan, its sender against a real HTTP client, its task against a real Valkey."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from dashboard import sample_traffic
from dashboard.models import Series, Source
from dashboard.sample_plan import plan
from dashboard.sample_sender import Sender, SendError
from dashboard.valkey import SAMPLE_TRAFFIC_LOCK, client


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
def test_it_starts_by_itself_with_an_empty_database_only() -> None:
    assert sample_traffic.is_first_start()
    source = Source.objects.create(name="embedded", kind="embedded")
    Series.objects.create(source=source, engine="local", metric="scrapes")
    assert not sample_traffic.is_first_start()


@pytest.mark.django_db
def test_a_variable_turns_it_off(settings: Any) -> None:
    settings.SAMPLE_TRAFFIC = False
    assert not sample_traffic.is_first_start()
