"""Threads that move bytes, in order, and hand each outcome back to the thread that keeps the books.

Knows nothing about blocks: an operation is something to run and something to tell.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

Done = Callable[[Exception | None, float], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` is called on a transfer thread; `done(error, seconds)` later on the owner's, by `Transfers.apply`."""

    run: Callable[[], None]
    done: Done


@dataclass(frozen=True, slots=True)
class Outcome:
    """An operation that has been run; `error` is what it raised."""

    operation: Operation
    error: Exception | None
    seconds: float


class Lane(Protocol):
    """Runs batches first in, first out: an operation may rely on all those before it."""

    def submit(self, batch: Sequence[Operation]) -> None: ...

    def work(self) -> None:
        """Called by the owner now and then."""

    def close(self) -> None:
        """Ends after the operation that runs now; what has not begun is not run."""


class ThreadLane:
    """A lane with a thread of its own. `ring` is called on it after each batch."""

    def __init__(self, name: str, finish: Callable[[Outcome], None], ring: Callable[[], None]) -> None:
        self._finish = finish
        self._ring = ring
        self._batches: SimpleQueue[Sequence[Operation] | None] = SimpleQueue()
        self._must_end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"tiers-{name}", daemon=True)
        self._thread.start()

    def submit(self, batch: Sequence[Operation]) -> None:
        self._batches.put(batch)

    def work(self) -> None:
        """The thread does it."""

    def close(self) -> None:
        self._must_end.set()
        self._batches.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (batch := self._batches.get()) is not None:
            for operation in batch:
                if self._must_end.is_set():
                    return
                self._finish(_run(operation))
            self._ring()


class InlineLane:
    """A lane without a thread: the owner runs what there is."""

    def __init__(self, finish: Callable[[Outcome], None]) -> None:
        self._finish = finish
        self._batches: deque[Sequence[Operation]] = deque()

    def submit(self, batch: Sequence[Operation]) -> None:
        self._batches.append(batch)

    def work(self) -> None:
        while self._batches:
            for operation in self._batches.popleft():
                self._finish(_run(operation))

    def close(self) -> None:
        self._batches.clear()


def _nothing(error: Exception | None, seconds: float) -> None:
    """To be told."""


def _run(operation: Operation) -> Outcome:
    started_at = time.perf_counter()
    error: Exception | None = None
    try:
        operation.run()
    except Exception as caught:
        error = caught
    return Outcome(operation, error, time.perf_counter() - started_at)


class Transfers:
    """The lanes: `near` for all that touches gpu, `far` for files, `fetch` and `send` for a server, if there is one.

    With fewer than two threads they are the same.
    """

    def __init__(self, num_threads: int, ring: Callable[[], None], *, has_server: bool = False) -> None:
        self._finished: SimpleQueue[Outcome] = SimpleQueue()
        self.num_pending = 0
        finish = self._finished.put
        self._near: Lane = ThreadLane("near", finish, ring) if num_threads else InlineLane(finish)
        names = ("far", "fetch", "send") if has_server else ("far",)
        others = {name: ThreadLane(name, finish, ring) for name in names if num_threads > 1}
        self._far, self._fetch, self._send = (others.get(name, self._near) for name in ("far", "fetch", "send"))
        self._lanes: list[Lane] = [self._near, *others.values()]

    def submit_near(self, batch: Sequence[Operation]) -> None:
        self.num_pending += len(batch)
        self._near.submit(batch)

    def submit_far(self, batch: Sequence[Operation]) -> None:
        self.num_pending += len(batch)
        self._far.submit(batch)

    def submit_fetch(self, batch: Sequence[Operation]) -> None:
        """Begins when all that was submitted to `near` before is done: the slots are free to be written then."""
        self.submit_near([Operation(partial(self._fetch.submit, batch), _nothing)])
        self.num_pending += len(batch)

    def submit_send(self, batch: Sequence[Operation]) -> None:
        self.num_pending += len(batch)
        self._send.submit(batch)

    def apply(self) -> bool:
        """Tell what has finished; True if there was something. The only place where `done` is called."""
        self._near.work()
        has_applied = False
        while True:
            try:
                outcome = self._finished.get_nowait()
            except Empty:
                return has_applied
            has_applied = True
            self.num_pending -= 1
            outcome.operation.done(outcome.error, outcome.seconds)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
