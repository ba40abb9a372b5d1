"""A trace's texts go to an API as far apart as they came, several at once, each counted for what came of it."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from dashboard.real_replay import outcome_lines
from dashboard.real_sender import Outcome, RealSender
from dashboard.sample_sender import SendError


@dataclass(frozen=True)
class Request:
    at_seconds: float
    prompt: Any = "text"
    num_output_tokens: int = 5


def answered(hits: int = 3) -> httpx.Response:
    usage = {"prompt_tokens": 10, "tierscope": {"hit_tokens": {"gpu": hits}}}
    return httpx.Response(200, json={"choices": [], "usage": usage})


class Clock:
    """Sleeping is all that takes time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def sender(api: Callable[[httpx.Request], httpx.Response], clock: Clock | None = None, **options: Any) -> RealSender:
    clock = clock or Clock()
    client = httpx.Client(transport=httpx.MockTransport(api), base_url="http://test")
    given = {"speed": 1.0, "most_tokens": 8, "at_once": 4, **options}
    return RealSender(client, "smol", clock=clock, sleep=clock.sleep, **given)


def send(api: Callable[[httpx.Request], httpx.Response], requests: list[Request], **options: Any) -> Outcome:
    outcome = sender(api, **options).send(requests, lambda: None)
    outcome.check()
    return outcome


def test_requests_come_as_far_apart_as_in_the_trace_divided_by_the_speed() -> None:
    clock, came = Clock(), []

    def api(request: httpx.Request) -> httpx.Response:
        came.append(clock.now)
        return answered()

    send(api, [Request(at) for at in (0.0, 40.0, 100.0)], clock=clock, speed=10.0, at_once=1)
    assert came == [100.0, 104.0, 110.0]


def test_texts_and_conversations_go_to_their_own_endpoints_and_answers_are_capped() -> None:
    bodies: dict[str, Any] = {}

    def api(request: httpx.Request) -> httpx.Response:
        bodies[request.url.path] = json.loads(request.content)
        return answered()

    messages = [{"role": "user", "content": "hi"}]
    outcome = send(api, [Request(0.0, "text", 500), Request(0.0, messages, 0)])
    assert bodies["/v1/completions"] | {"prompt": "text", "max_tokens": 8} == bodies["/v1/completions"]
    assert bodies["/v1/chat/completions"] | {"messages": messages, "max_tokens": 1} == bodies["/v1/chat/completions"]
    assert (outcome.answered, outcome.prompt_tokens, outcome.hit_tokens) == (2, 20, {"gpu": 6})


def test_never_more_than_so_many_are_under_way() -> None:
    under_way, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=10)

    def api(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        both.wait()
        with lock:
            under_way -= 1
        return answered()

    assert send(api, [Request(0.0)] * 8, at_once=2).answered == 8
    assert most == 2


def test_what_is_longer_than_the_model_takes_is_counted_and_said() -> None:
    def api(request: httpx.Request) -> httpx.Response:
        error = {"message": "too long", "code": "context_length_exceeded"}
        return httpx.Response(400, json={"error": error})

    outcome = send(api, [Request(0.0)] * 3)
    assert (outcome.sent, outcome.too_long, outcome.failed) == (3, 3, 0)
    assert "3 skipped: longer than the model takes." in outcome_lines(outcome)


def test_a_busy_engine_is_asked_again_and_what_fails_is_told() -> None:
    statuses = iter([503, 429, 200, 500])

    def api(request: httpx.Request) -> httpx.Response:
        status = next(statuses)
        return answered() if status == 200 else httpx.Response(status, json={"error": {"message": "no"}})

    outcome = send(api, [Request(0.0), Request(0.0)], at_once=1)
    assert (outcome.answered, outcome.failed, outcome.failures) == (1, 1, ["500: no"])
    assert outcome.latest_seconds == 2.0
    assert "The engine was slower than the trace: requests came up to 2 s late." in outcome_lines(outcome)


def test_a_trace_without_texts_and_a_refused_key_end_it_with_a_sentence() -> None:
    with pytest.raises(SendError, match="no texts"):
        send(lambda request: answered(), [Request(0.0, None)])
    with pytest.raises(SendError, match="not accepted"):
        send(lambda request: httpx.Response(401, json={}), [Request(0.0)] * 9, at_once=1)


def test_an_interrupt_breaks_off_what_is_under_way_and_is_raised() -> None:
    def interrupted() -> Any:
        yield Request(0.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sender(lambda request: answered()).send(interrupted(), lambda: None)
