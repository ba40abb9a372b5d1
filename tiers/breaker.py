"""Stops asking a server that keeps failing, and finds out when it is back. Knows nothing about servers or blocks.

A circuit breaker (M. Nygard, Release It!, 2007): closed while all is well; open after so many failures in a row, then
nothing is asked; half-open while one probe is under way.
"""

import threading
from collections.abc import Callable
from enum import StrEnum

from tiers.errors import UnreachableError


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Ways (reading, writing) fail each for themselves, so that one that works does not hide one that does not.

    The time to the next probe doubles with every opening, until the way that failed has worked again.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        num_failures: int = 3,
        probe_seconds: float = 1.0,
        max_probe_seconds: float = 30.0,
    ) -> None:
        self._clock = clock
        self._num_failures = num_failures
        self._first_wait = self._wait = probe_seconds
        self._max_wait = max_probe_seconds
        self._failures: dict[str, int] = {}
        self._culprit = ""
        self._probe_at = 0.0
        self._lock = threading.Lock()
        self.state = BreakerState.CLOSED
        self.num_opened = 0
        self.last_error = ""

    @property
    def is_closed(self) -> bool:
        return self.state is BreakerState.CLOSED

    @property
    def refusal(self) -> str:
        """Why nothing is asked unless closed."""
        return f"not asked, because it failed before: {self.last_error}"

    def check(self) -> None:
        """Raises UnreachableError unless closed."""
        if not self.is_closed:
            raise UnreachableError(self.refusal)

    def begin_probe(self) -> bool:
        """True if it is time to find out; the caller then asks, and tells how it went."""
        with self._lock:
            if self.state is not BreakerState.OPEN or self._clock() < self._probe_at:
                return False
            self.state = BreakerState.HALF_OPEN
            return True

    def succeeded(self, way: str) -> None:
        with self._lock:
            self._failures[way] = 0
            if way == self._culprit and self.state is BreakerState.CLOSED:
                self._culprit, self._wait = "", self._first_wait
            elif self.state is BreakerState.HALF_OPEN:
                self.state = BreakerState.CLOSED

    def failed(self, way: str, why: str) -> None:
        with self._lock:
            self.last_error = why.rstrip(".")  # others put it into sentences of theirs
            self._failures[way] = self._failures.get(way, 0) + 1
            if self.state is BreakerState.HALF_OPEN or self._failures[way] >= self._num_failures:
                self._open(way)

    def _open(self, way: str) -> None:
        if self.state is BreakerState.CLOSED:
            self.num_opened += 1
            self._culprit = way
        if self.state is not BreakerState.OPEN:
            self._probe_at = self._clock() + self._wait
            self._wait = min(2 * self._wait, self._max_wait)
        self.state = BreakerState.OPEN
        self._failures[way] = 0
