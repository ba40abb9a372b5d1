"""The engine as other threads see it: a thread that sleeps, wakes, drains, and survives what goes wrong in a step."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from engine.request import BusyError, Event, FinishedEvent, GenerationRequest, RequestError
from engine.sampling import SamplingParams
from engine.scheduler import Plan
from tests.engine.harness import Answer, Rig, make_rig
from tests.engine.mock_runner import expected_tokens
from tests.engine.test_scheduler import prompt
from tiers import Tier, WriteMode


class Waiting(Answer):
    """An answer that another thread can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = threading.Event()

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, FinishedEvent):
            self.is_over.set()

    def wait(self) -> "Waiting":
        assert self.is_over.wait(20), "the request hangs"
        return self


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = make_rig(gpu=32, cpu=32, num_transfer_threads=2)
    rig.engine.start()
    yield rig
    rig.engine.stop()


def submit(rig: Rig, request_id: str, tokens: list[int], max_tokens: int = 3) -> Waiting:
    answer = Waiting()
    sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens)
    rig.engine.submit(GenerationRequest(request_id, tokens, sampling), answer)
    return answer


def _raise_once(function: Callable[..., None]) -> Callable[..., None]:
    faults = [RuntimeError("once")]

    def wrapped(*args: object) -> None:
        if faults:
            raise faults.pop()
        function(*args)

    return wrapped


def _fail_once_busy(rig: Rig) -> Callable[[], Plan]:
    schedule, faults = rig.engine._scheduler.schedule, [RuntimeError("books do not balance")]

    def wrapped() -> Plan:
        if faults and rig.engine._scheduler.sequences:
            raise faults.pop()
        return schedule()

    return wrapped


def test_requests_from_many_threads_all_get_their_own_answer(rig: Rig) -> None:
    answers: dict[int, Waiting] = {}

    def client(number: int) -> None:
        answers[number] = submit(rig, f"r{number}", prompt(number, 9 + number % 5), 5)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(24)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    for number, answer in answers.items():
        assert answer.wait().tokens == expected_tokens(prompt(number, 9 + number % 5), 5)
    rig.engine.check()


def test_an_idle_engine_sleeps(rig: Rig) -> None:
    submit(rig, "a", prompt(1, 9)).wait()
    time.sleep(0.05)
    naps: list[float] = []
    sleep = rig.engine._inbox.sleep

    def watched(seconds: float) -> None:
        naps.append(seconds)
        sleep(seconds)

    rig.engine._inbox.sleep = watched  # type: ignore[method-assign]
    rig.engine._inbox.ring()
    time.sleep(0.3)
    assert len(naps) <= 2
    assert submit(rig, "b", prompt(1, 9)).wait().reason == "length"


def test_commands_are_answered_by_an_idle_engine(rig: Rig) -> None:
    submit(rig, "a", prompt(1, 17)).wait()
    assert rig.engine.clear(Tier.GPU).result(5) == 4
    rig.engine.resize(Tier.CPU, 0).result(5)
    rig.engine.configure(Tier.CPU, write_mode=WriteMode.WRITE_THROUGH).result(5)
    assert rig.engine.snapshot().cache[Tier.CPU].capacity_blocks == 0


def test_a_snapshot_is_consistent_while_requests_come_and_go(rig: Rig) -> None:
    answers = [submit(rig, f"r{number}", prompt(number % 4, 18), 8) for number in range(40)]
    while not all(answer.finished for answer in answers):
        rig.engine.snapshot().counters.check()
        time.sleep(0.001)
    assert rig.engine.snapshot().num_running == 0


def test_a_failing_step_ends_its_requests_with_the_reason_and_the_engine_goes_on(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.runner.fail_next = RuntimeError("CUDA error: an illegal memory access")
    with caplog.at_level(logging.ERROR):
        broken = submit(rig, "a", prompt(1, 9)).wait()
    assert broken.reason == "error"
    assert "illegal memory access" in str(broken.error)
    assert "'a'" in caplog.text
    assert submit(rig, "b", prompt(1, 9)).wait().tokens == expected_tokens(prompt(1, 9), 3)
    rig.engine.check()


def test_a_fault_in_the_engine_itself_ends_requests_but_not_the_engine(rig: Rig) -> None:
    rig.engine._scheduler.schedule = _fail_once_busy(rig)  # type: ignore[method-assign]
    next_one = submit(rig, "a", prompt(1, 9)).wait()
    assert (next_one.reason, "books do not balance" in str(next_one.error)) == ("error", True)
    rig.engine._postprocess = _raise_once(rig.engine._postprocess)  # type: ignore[method-assign]
    lost = submit(rig, "b", prompt(2, 9)).wait()
    assert lost.reason == "error"
    assert submit(rig, "c", prompt(1, 9)).wait().tokens == expected_tokens(prompt(1, 9), 3)
    rig.engine.check()


def test_a_listener_that_fails_loses_its_own_request_only(rig: Rig) -> None:
    def broken(event: Event) -> None:
        raise OSError("the client went away")

    sampling = SamplingParams(temperature=0.0, max_tokens=40)
    rig.engine.submit(GenerationRequest("broken", prompt(2, 9), sampling), broken)
    assert submit(rig, "a", prompt(1, 9)).wait().reason == "length"
    submit(rig, "b", prompt(3, 9), 45).wait()
    assert rig.engine.snapshot().counters.requests["abort"] == 1


def test_stopping_lets_requests_finish_and_takes_no_more() -> None:
    rig = make_rig(gpu=32)
    rig.engine.start()
    answers = [submit(rig, f"r{number}", prompt(number, 9), 20) for number in range(4)]
    rig.engine.stop(drain_seconds=1e9)
    assert [answer.reason for answer in answers] == ["length"] * 4
    with pytest.raises(BusyError, match="stopping"):
        submit(rig, "late", prompt(1, 9))
    with pytest.raises(RuntimeError, match="has stopped"):
        rig.engine.clear(Tier.GPU).result(0)


def test_stopping_without_patience_ends_requests_with_a_clear_error() -> None:
    rig = make_rig(gpu=32, max_model_len=10_000)
    answer = rig.submit("a", prompt(1, 9), 100)
    rig.step()
    rig.engine.stop()
    assert answer.reason == "error"
    assert answer.error == "The engine was stopped before the request was finished."


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(RequestError, match="prompt is empty"):
        GenerationRequest("a", [], SamplingParams(max_tokens=1))


def test_a_refused_request_leaves_no_trace(rig: Rig) -> None:
    with pytest.raises(RequestError):
        submit(rig, "a", prompt(1, 900))
    assert rig.engine.num_unfinished == 0
    assert submit(rig, "a", prompt(1, 9)).wait().reason == "length"
