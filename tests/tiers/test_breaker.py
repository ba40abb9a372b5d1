"""It opens after failures in a row, lets one probe through at a time, and waits longer each time that one fails."""

import pytest

from tests.tiers.rig import Clock
from tiers.breaker import Breaker, BreakerState
from tiers.errors import UnreachableError


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock, num_failures=3, probe_seconds=1.0, max_probe_seconds=8.0)


def fail(breaker: Breaker, way: str = "reading", times: int = 3) -> None:
    for _ in range(times):
        breaker.failed(way, "no answer")


def test_it_opens_after_failures_in_a_row_and_says_why(breaker: Breaker) -> None:
    fail(breaker, times=2)
    breaker.succeeded("reading")
    fail(breaker, times=2)
    breaker.check()
    fail(breaker, times=1)
    with pytest.raises(UnreachableError, match="no answer"):
        breaker.check()
    assert (breaker.state, breaker.num_opened) == (BreakerState.OPEN, 1)


def test_a_way_that_works_does_not_hide_one_that_fails(breaker: Breaker) -> None:
    for _ in range(3):
        fail(breaker, "reading", 1)
        breaker.succeeded("writing")
    assert breaker.state is BreakerState.OPEN


def test_one_probe_at_a_time_closes_it_or_waits_twice_as_long(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    waits = []
    for _ in range(5):
        opened_at = clock.now
        while not breaker.begin_probe():
            clock.now += 0.5
        assert breaker.state is BreakerState.HALF_OPEN
        assert not breaker.begin_probe()
        waits.append(clock.now - opened_at)
        breaker.failed("writing", "still no answer")
    assert waits == [1, 2, 4, 8, 8]
    clock.now += 8
    assert breaker.begin_probe()
    breaker.succeeded("writing")
    breaker.check()
    assert breaker.num_opened == 1


def test_the_wait_is_short_again_only_once_the_way_that_failed_has_worked(breaker: Breaker, clock: Clock) -> None:
    def wait_after_failures() -> float:
        fail(breaker, "reading")
        opened_at = clock.now
        while not breaker.begin_probe():
            clock.now += 0.5
        breaker.succeeded("writing")
        return clock.now - opened_at

    assert wait_after_failures() == 1
    assert wait_after_failures() == 2
    breaker.succeeded("reading")
    assert wait_after_failures() == 1
