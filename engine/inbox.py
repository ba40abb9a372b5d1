"""What other threads ask of the stepping thread: calls that it makes between two steps, in order.

Knows nothing about what the calls do.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


class ClosedError(RuntimeError):
    """The engine has stopped; nothing is accepted any more."""


class Inbox:
    """A queue of calls with a bell. Any thread puts, one thread takes."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._bell = threading.Event()
        self._lock = threading.Lock()
        self._is_closed = False

    def put(self, call: Callable[[], None]) -> None:
        """Raises ClosedError after close()."""
        with self._lock:
            if self._is_closed:
                raise ClosedError("The engine has stopped.")
            self._calls.append(call)
        self.ring()

    def ask(self, call: Callable[[], T]) -> "Future[T]":
        """Like put, with the call's result or exception in a future."""
        future: Future[T] = Future()

        def answer() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = call()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            self.put(answer)
        except ClosedError as error:
            future.set_exception(error)
        return future

    def take(self) -> bool:
        """Make the calls that wait now; True if there were any."""
        num_calls = len(self._calls)
        for _ in range(num_calls):
            call = self._calls.popleft()
            try:
                call()
            except Exception:
                log.exception("a call between two steps failed")
        return num_calls > 0

    def ring(self) -> None:
        """Wake the stepping thread: there is something to do."""
        self._bell.set()

    def listen(self) -> None:
        """Forget earlier rings; called before looking for work, so that no later ring is lost."""
        self._bell.clear()

    def sleep(self, seconds: float) -> None:
        """Until the next ring, or so long."""
        self._bell.wait(seconds)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
