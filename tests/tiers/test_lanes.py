"""Lanes run what they are given, tell what came of it, and end when they are told to."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

import pytest

from tiers.lanes import Done, InlineLane, Lane, Operation, Outcome, ThreadLane, processors

Finish = Callable[[Outcome], None]


def told_nothing(error: Exception | None, seconds: float) -> None:
    """Of operations whose `done` nobody calls here."""


def operation(run: Callable[[], None], done: Done = told_nothing) -> Operation:
    return Operation(run, done)


class Rig:
    """A lane, what has finished on it, and how often it rang."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self.outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self.rings: SimpleQueue[None] = SimpleQueue()
        finish: Finish = self.outcomes.put
        self.lane: Lane = (
            ThreadLane("test", finish, lambda: self.rings.put(None), num_threads) if num_threads else InlineLane(finish)
        )

    def outcome(self) -> Outcome:
        self.lane.work()
        return self.outcomes.get(timeout=10)


@pytest.fixture(params=[0, 1, 4], ids=["inline", "one thread", "four threads"])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    rig = Rig(request.param)
    yield rig
    rig.lane.close()


def test_what_an_operation_raises_is_its_outcome_and_the_next_one_runs(rig: Rig) -> None:
    def fail() -> None:
        raise OSError("no")

    rig.lane.submit([operation(fail), operation(lambda: None)])
    errors = {str(rig.outcome().error) for _ in range(2)}
    assert errors == {"no", "None"}


@pytest.mark.parametrize("rig", [0, 1], indirect=True)
def test_without_company_operations_run_in_their_order(rig: Rig) -> None:
    seen: list[int] = []
    for start in (0, 10):
        rig.lane.submit([operation(lambda n=n: seen.append(n)) for n in range(start, start + 10)])  # type: ignore[misc]
    for _ in range(20):
        rig.outcome()
    assert seen == list(range(20))


@pytest.mark.parametrize("rig", [0, 1], indirect=True)
def test_a_lane_is_idle_when_all_has_been_run(rig: Rig) -> None:
    idle = [rig.lane.is_idle]
    may_end = threading.Event()

    def wait() -> None:
        may_end.wait(10 * rig.num_threads)  # inline, nobody else could end it

    rig.lane.submit([operation(wait)])
    idle.append(rig.lane.is_idle)
    may_end.set()
    rig.outcome()
    deadline = time.monotonic() + 10
    while not rig.lane.is_idle:
        assert time.monotonic() < deadline
    assert idle == [True, False]


@pytest.mark.parametrize("rig", [4], indirect=True)
def test_four_threads_run_four_operations_at_once_and_share_the_time(rig: Rig) -> None:
    together = threading.Barrier(4, timeout=10)

    def meet() -> None:
        together.wait()
        time.sleep(0.04)

    rig.lane.submit([operation(meet) for _ in range(4)])
    outcomes = [rig.outcome() for _ in range(4)]
    assert [outcome.error for outcome in outcomes] == [None] * 4
    assert sum(outcome.seconds for outcome in outcomes) >= 0.04


def test_a_shared_operation_is_told_once_when_the_last_of_its_calls_has_ended(rig: Rig) -> None:
    left = SimpleQueue[int]()
    for number in range(100):
        left.put(number)
    done = SimpleQueue[int]()

    def take_turns() -> None:
        while not left.empty():
            with suppress(Empty):
                number = left.get_nowait()
                time.sleep(0.001)
                done.put(number)

    rig.lane.submit([Operation(take_turns, told_nothing, is_shared=True), operation(lambda: None)])
    assert {rig.outcome().operation.is_shared for _ in range(2)} == {True, False}
    assert done.qsize() == 100
    assert rig.outcomes.empty()


@pytest.mark.parametrize("rig", [4], indirect=True)
def test_all_threads_work_at_a_shared_operation(rig: Rig) -> None:
    together = threading.Barrier(4, timeout=10)

    def meet() -> None:
        together.wait()

    rig.lane.submit([Operation(meet, told_nothing, is_shared=True)])
    assert rig.outcome().error is None


def test_what_one_call_of_a_shared_operation_raises_is_its_outcome(rig: Rig) -> None:
    calls = SimpleQueue[None]()
    calls.put(None)

    def fail_once() -> None:
        if calls.qsize():
            calls.get()
            raise OSError("no")

    rig.lane.submit([Operation(fail_once, told_nothing, is_shared=True)])
    assert str(rig.outcome().error) == "no"


def test_shared_operations_end_once_each_whatever_the_threads_do(rig: Rig) -> None:
    rig.lane.submit([Operation(lambda: None, told_nothing, is_shared=True) for _ in range(500)])
    assert len({id(rig.outcome().operation) for _ in range(500)}) == 500
    assert rig.outcomes.empty()


@pytest.mark.parametrize("rig", [1, 4], indirect=True)
@pytest.mark.parametrize("is_shared", [True, False])
def test_what_operations_took_adds_up_to_the_lanes_time_however_they_came(rig: Rig, is_shared: bool) -> None:
    """Where two prompts' files are read at once, neither may be told the time of both."""

    def turns() -> None:
        for _ in range(4):
            time.sleep(0.005)

    began_at = time.perf_counter()
    for num_operations in (1, 3):
        rig.lane.submit([Operation(turns, told_nothing, is_shared) for _ in range(num_operations)])
    seconds = [rig.outcome().seconds for _ in range(4)]
    assert sum(seconds) <= time.perf_counter() - began_at
    assert min(seconds) > 0


@pytest.mark.parametrize("rig", [1, 4], indirect=True)
def test_the_owner_is_rung_once_a_batch_when_all_of_it_is_over(rig: Rig) -> None:
    rig.lane.submit([operation(lambda: None) for _ in range(20)])
    rig.rings.get(timeout=10)
    assert rig.outcomes.qsize() == 20
    rig.lane.close()
    assert rig.rings.empty()


@pytest.mark.parametrize("rig", [1, 4], indirect=True)
def test_closing_leaves_undone_what_has_not_begun(rig: Rig) -> None:
    may_end, has_begun = threading.Event(), threading.Event()

    def first() -> None:
        has_begun.set()
        may_end.wait(10)

    rig.lane.submit([operation(first) for _ in range(8)])
    assert has_begun.wait(10)
    closing = threading.Thread(target=rig.lane.close)
    closing.start()
    time.sleep(0.05)  # the end has been announced
    may_end.set()
    closing.join(10)
    assert not closing.is_alive()
    assert rig.outcomes.qsize() <= 4


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a whole process has one niceness")
@pytest.mark.parametrize("niceness", [0, 3])
def test_a_patient_lane_gives_way_and_nobody_else_does(niceness: int) -> None:
    def own() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    seen: SimpleQueue[int] = SimpleQueue()
    before = own()
    lane = ThreadLane("test", lambda outcome: None, lambda: None, 2, niceness)
    together = threading.Barrier(2, timeout=10)

    def tell() -> None:
        together.wait()
        seen.put(own())

    lane.submit([operation(tell)] * 2)
    assert [seen.get(timeout=10) for _ in range(2)] == [min(19, before + niceness)] * 2
    assert own() == before
    lane.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread cannot be kept on a processor")
@pytest.mark.parametrize("num_more", [0, 1])
def test_where_each_processor_has_a_thread_each_thread_stays_on_its_own(num_more: int) -> None:
    available = processors()
    num_threads = len(available) + num_more
    seen: SimpleQueue[frozenset[int]] = SimpleQueue()
    lane = ThreadLane("test", lambda outcome: None, lambda: None, num_threads)
    together = threading.Barrier(num_threads, timeout=10)

    def tell() -> None:
        together.wait()
        seen.put(frozenset(os.sched_getaffinity(0)))

    lane.submit([operation(tell)] * num_threads)
    homes = [seen.get(timeout=10) for _ in range(num_threads)]
    assert sorted(map(sorted, homes)) == (
        [sorted(available)] * num_threads if num_more else [[processor] for processor in sorted(available)]
    )
    assert processors() == available
    lane.close()
