"""Processes die, brokers restart, clients hang up: nobody waits for ever, and nothing is answered twice.

Real processes; the engine's words are scripted, so that a kill hits a request where the test wants it.
"""

import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import openai
import pytest

from dashboard import valkey
from tests.e2e.looks import logged_in
from tests.e2e.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    limits = {"TIERSCOPE_MAX_WAITING": "2", "TIERSCOPE_START_SECONDS": "30"}
    stack = Stack(tmp_path_factory.mktemp("faults"), engine_app="tests.e2e.scripted_engine", env=limits)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(autouse=True)
def everything_is_up(stack: Stack) -> None:
    for name in ("valkey", "web", "engine"):
        if name not in stack.processes:
            stack.start_process(name)
    stack.wait_until(lambda: stack.health()[0] == 200, "the stack is up")
    stack.wait_until(lambda: published(stack).get("requests_running") == 0, "the test before has ended")


def body(**script: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": json.dumps(script)}]}


def stream(stack: Stack, **script: Any) -> Any:
    return stack.openai().chat.completions.create(**body(**script), stream=True)


def in_background(call: Any) -> "Future[Any]":
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def published(stack: Stack) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(str(stack.valkey().get("ts:engine:local") or "{}"))
    return told


def test_an_answer_that_was_read_to_its_end_leaves_nothing_in_valkey(stack: Stack) -> None:
    whole = stack.openai().chat.completions.create(**body())
    streamed = list(stream(stack))[-1]
    keys = [valkey.stream_key(f"{answer.id}.1") for answer in (whole, streamed)]
    stack.wait_until(lambda: not stack.valkey().exists(*keys), "both streams are gone", 5)


def test_a_client_that_hangs_up_in_a_stream_aborts_its_request(stack: Stack) -> None:
    answer = stream(stack, words=500, pause=0.05)
    run_id = next(iter(answer)).id + ".1"
    answer.close()

    stack.wait_until(lambda: run_id in published(stack).get("aborted", []), "the engine was told", 5)
    stack.wait_until(lambda: published(stack).get("requests_running") == 0, "the request ended", 5)


def test_a_client_that_hangs_up_before_the_first_word_aborts_its_request(stack: Stack) -> None:
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    before = len(published(stack)["aborted"])
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{stack.base_url}/v1/chat/completions", json=body(wait=30), headers=headers, timeout=0.8)

    stack.wait_until(lambda: len(published(stack).get("aborted", [])) > before, "the engine was told", 5)


def test_a_request_whose_worker_is_killed_before_the_first_word_is_run_again(stack: Stack) -> None:
    answer = in_background(lambda: stack.openai().chat.completions.create(**body(words=2, wait=2)))
    stack.wait_until(lambda: published(stack).get("requests_running") == 1, "it runs")
    stack.kill("engine")
    stack.start_process("engine")

    assert answer.result(30).choices[0].message.content == "w0 w1 "


def test_a_request_that_a_killed_worker_never_started_is_run_again(stack: Stack) -> None:
    stack.processes["engine"].send_signal(signal.SIGSTOP)
    answer = in_background(lambda: stack.openai().chat.completions.create(**body(words=1)))
    stack.wait_until(lambda: list(stack.valkey().scan_iter("ts:request:*")), "it was sent")
    stack.kill("engine")
    stack.start_process("engine")

    assert answer.result(20).choices[0].message.content == "w0 "


def test_a_whole_answer_whose_worker_is_killed_half_way_is_run_again(stack: Stack) -> None:
    answer = in_background(lambda: stack.openai().chat.completions.create(**body(words=40, pause=0.05)))
    stack.wait_until(lambda: published(stack).get("num_words", 0) > 3, "words are made")
    stack.kill("engine")
    stack.start_process("engine")

    assert answer.result(30).choices[0].message.content == "".join(f"w{n} " for n in range(40))


def test_a_stream_whose_worker_is_killed_ends_with_an_error(stack: Stack) -> None:
    answer = iter(stream(stack, words=500, pause=0.05))
    next(answer)
    next(answer)
    stack.kill("engine")
    killed_at = time.monotonic()

    with pytest.raises(openai.APIError, match="went away before it was done"):
        list(answer)
    assert time.monotonic() - killed_at < 15


def test_without_an_engine_the_answer_is_a_clear_503_at_once(stack: Stack) -> None:
    stack.kill("engine", signal.SIGTERM)

    asked_at = time.monotonic()
    with pytest.raises(openai.InternalServerError, match="No engine is running") as raised:
        stream(stack)
    assert raised.value.status_code == 503
    assert int(raised.value.response.headers["Retry-After"]) > 0
    assert time.monotonic() - asked_at < 5
    assert stack.health()[1]["engine"]["ok"] is False


def test_a_worker_that_is_asked_to_stop_finishes_what_it_runs(stack: Stack) -> None:
    boot_id = published(stack)["boot_id"]
    answer = in_background(lambda: stack.openai().chat.completions.create(**body(words=20, pause=0.05)))
    stack.wait_until(lambda: published(stack).get("requests_running") == 1, "it runs")

    assert stack.kill("engine", signal.SIGTERM) == 0
    assert answer.result(10).choices[0].finish_reason == "length"
    assert published(stack) == {}
    last = json.loads(str(stack.valkey().get(f"ts:final:local:{boot_id}")))
    assert last["status"] == "stopping"


def test_a_web_process_that_is_asked_to_stop_finishes_short_answers_and_says_so_in_long_ones(stack: Stack) -> None:
    long = stream(stack, words=900, pause=0.05)
    next(iter(long))
    whole = in_background(lambda: stack.openai().chat.completions.create(**body(words=900, pause=0.05)))
    short = in_background(lambda: stack.openai().chat.completions.create(**body(words=20, pause=0.1)))
    stack.wait_until(lambda: published(stack).get("requests_running") == 3, "they run")
    stack.processes["web"].send_signal(signal.SIGTERM)

    with pytest.raises(openai.APIError, match="is stopping; send the request again"):
        list(long)
    assert short.result(10).choices[0].finish_reason == "length"
    error = whole.exception(10)
    assert isinstance(error, openai.InternalServerError)
    assert "is stopping" in error.message
    assert int(error.response.headers["Retry-After"]) > 0
    stack.kill("web", signal.SIGTERM)
    stack.wait_until(lambda: published(stack).get("requests_running") == 0, "the engine was told", 5)


def test_an_open_page_does_not_hold_up_the_stop_of_the_web_process(stack: Stack) -> None:
    with closing(logged_in(stack, 10)) as page, page.stream("GET", "/events") as events:
        lines = events.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: hello"
        asked_at = time.monotonic()
        stack.processes["web"].send_signal(signal.SIGTERM)
        assert [line for line in lines if line.startswith("event:")] == []
    stack.kill("web", signal.SIGTERM)
    assert time.monotonic() - asked_at < 4.5, "that is as long as the patience with answers"


def test_a_restarted_broker_is_found_again_by_everybody(stack: Stack) -> None:
    stack.restart("valkey", signal.SIGKILL)

    stack.wait_until(lambda: stack.health()[0] == 200, "web and engine are back")
    answer = stack.wait_until(lambda: _answer_or_none(stack), "a request is answered")
    assert answer.choices[0].message.content == "w0 w1 w2 "


def test_a_stream_over_a_broker_restart_has_no_gap(stack: Stack) -> None:
    answer = stream(stack, words=60, pause=0.05)
    words: list[str] = []
    read = in_background(lambda: _read_into(words, answer))
    stack.wait_until(lambda: len(words) > 5, "words arrive")
    stack.restart("valkey", signal.SIGKILL)

    error = read.exception(40)
    assert error is None or "went away" in str(error)
    assert words == [f"w{n} " for n in range(60 if error is None else len(words))]


def test_without_a_broker_the_answer_is_a_clear_503(stack: Stack) -> None:
    stack.kill("valkey")
    with pytest.raises(openai.InternalServerError, match="Valkey, the message broker, cannot be reached"):
        stream(stack)
    assert stack.health()[1]["broker"]["ok"] is False


def test_more_requests_than_may_wait_are_refused_with_the_time_to_come_back(stack: Stack) -> None:
    stack.processes["engine"].send_signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(stack.openai().chat.completions.create, **body()) for _ in range(4)]
            # Both: the second could still be on its way in, and would find room once the engine goes on.
            stack.wait_until(lambda: sum(a.done() for a in asked) == 2, "two are refused", 5)
            error = next(a for a in asked if a.done()).exception()
            stack.processes["engine"].send_signal(signal.SIGCONT)
            others = [a.exception() for a in asked]
    finally:
        stack.processes["engine"].send_signal(signal.SIGCONT)

    assert isinstance(error, openai.RateLimitError)
    assert "2 requests are waiting already" in error.message
    assert int(error.response.headers["Retry-After"]) > 0
    assert others.count(None) == 2


def test_a_message_that_arrives_for_a_withdrawn_request_is_dropped(stack: Stack) -> None:
    stack.processes["engine"].send_signal(signal.SIGSTOP)
    try:
        headers = {"Authorization": f"Bearer {stack.api_key}"}
        url = f"{stack.base_url}/v1/chat/completions"
        given_up = in_background(lambda: httpx.post(url, json=body(words=9), headers=headers, timeout=1.5))
        # Without the look, a web process that is late would put the job only after it had been found withdrawn.
        (job,) = stack.wait_until(lambda: _waiting_jobs(stack), "the job is there", 1.5)
        with pytest.raises(httpx.ReadTimeout):
            given_up.result(5)
        stack.wait_until(lambda: not _waiting_jobs(stack), "the job is withdrawn", 5)
    finally:
        stack.processes["engine"].send_signal(signal.SIGCONT)

    # Its message was queued before this one's, so it has been looked at by now.
    assert stack.openai().chat.completions.create(**body(words=1)).choices[0].message.content == "w0 "
    assert not stack.valkey().exists(valkey.stream_key(job.removeprefix("ts:request:")))


def _waiting_jobs(stack: Stack) -> list[str]:
    return list(stack.valkey().scan_iter("ts:request:*"))


def _read_into(words: list[str], answer: Any) -> None:
    for chunk in answer:
        if chunk.choices[0].delta.content:
            words.append(chunk.choices[0].delta.content)


def _answer_or_none(stack: Stack) -> Any:
    try:
        return stack.openai().chat.completions.create(**body())
    except openai.APIError:
        return None
