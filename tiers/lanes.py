"""Where operations run: on threads of their own, or inline on the owner's. Knows nothing about blocks.

An operation is something to run and something to tell; what it came to is an outcome, told on the owner's thread.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

Done = Callable[[Exception | None, float], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` is called on a transfer thread; `done(error, seconds)` later on the owner's, by `Transfers.apply`."""

    run: Callable[[], None]
    done: Done


@dataclass(frozen=True, slots=True)
class Outcome:
    """An operation that has been run; `error` is what it raised.

    `seconds` is its share of its lane's time: where operations run side by side, less than it took by itself.
    """

    operation: Operation
    error: Exception | None
    seconds: float


class Lane(Protocol):
    """Runs batches first in, first out: with one thread, an operation may rely on all those before it."""

    @property
    def is_idle(self) -> bool:
        """All that was submitted has been run."""

    def submit(self, batch: Sequence[Operation]) -> None: ...

    def work(self) -> None:
        """Called by the owner now and then."""

    def close(self) -> None:
        """Ends after the operations that run now; what has not begun is not run."""


class _Countdown:
    """The operations of one batch that are not over."""

    def __init__(self, num_left: int, num_threads: int) -> None:
        self.num_at_once = min(num_left, num_threads)
        self._num_left = num_left
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        return not self._num_left

    def ends(self) -> bool:
        """True for the last one."""
        with self._lock:
            self._num_left -= 1
            return not self._num_left


class ThreadLane:
    """`num_threads` of its own, each by `niceness` more patient than the process where others want the processor.

    `ring` is called by the one that ends a batch.
    """

    def __init__(
        self,
        name: str,
        finish: Callable[[Outcome], None],
        ring: Callable[[], None],
        num_threads: int = 1,
        niceness: int = 0,
    ) -> None:
        self._niceness = niceness
        self._finish = finish
        self._ring = ring
        self._jobs: SimpleQueue[tuple[Operation, _Countdown] | None] = SimpleQueue()
        self._must_end = threading.Event()
        self._last: _Countdown | None = None
        self._threads = [
            threading.Thread(target=self._loop, name=f"tiers-{name}-{number}", daemon=True)
            for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_idle(self) -> bool:
        return self._last is None or self._last.is_over

    def submit(self, batch: Sequence[Operation]) -> None:
        self._last = countdown = _Countdown(len(batch), len(self._threads))
        for operation in batch:
            self._jobs.put((operation, countdown))

    def work(self) -> None:
        """The threads do it."""

    def close(self) -> None:
        self._must_end.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _loop(self) -> None:
        _give_way(self._niceness)
        while (job := self._jobs.get()) is not None and not self._must_end.is_set():
            operation, batch = job
            self._finish(_run(operation, batch.num_at_once))
            if batch.ends():
                self._ring()


class InlineLane:
    """A lane without a thread: the owner runs what there is."""

    def __init__(self, finish: Callable[[Outcome], None]) -> None:
        self._finish = finish
        self._batches: deque[Sequence[Operation]] = deque()

    @property
    def is_idle(self) -> bool:
        return not self._batches

    def submit(self, batch: Sequence[Operation]) -> None:
        self._batches.append(batch)

    def work(self) -> None:
        while self._batches:
            for operation in self._batches.popleft():
                self._finish(_run(operation))

    def close(self) -> None:
        self._batches.clear()


def _give_way(niceness: int) -> None:
    """Linux has it for each thread."""
    if niceness and sys.platform == "linux":
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + niceness)


def _run(operation: Operation, num_at_once: int = 1) -> Outcome:
    started_at = time.perf_counter()
    error: Exception | None = None
    try:
        operation.run()
    except Exception as caught:
        error = caught
    return Outcome(operation, error, (time.perf_counter() - started_at) / num_at_once)
