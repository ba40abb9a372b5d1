"""Where operations run: on threads of their own, or inline on the owner's. Knows nothing about blocks.

An operation is something to run and something to tell; what it came to is an outcome, told on the owner's thread.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

Done = Callable[[Exception | None, float], None]


def nobody_asks(error: Exception | None, seconds: float) -> None:
    """What such an operation comes to."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` is called on a transfer thread; `done(error, seconds)` later on the owner's, by `Transfers.apply`.

    Where it is shared, several threads call `run`, each of which does what no other has begun: when one call has ended,
    nothing is left to begin.
    """

    run: Callable[[], None]
    done: Done
    is_shared: bool = False


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

    def __init__(self, num_left: int) -> None:
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


class _Meter:
    """A lane's time, of which the operations that run at a moment have equal shares: they add up to it."""

    def __init__(self) -> None:
        self._num_running = 0
        self._share = 0.0  # of one that had run since the lane began
        self._told_at = 0.0
        self._lock = threading.Lock()

    def change(self, num_more: int) -> float:
        """So many more run from now on; the share of one that runs always."""
        with self._lock:
            now = time.perf_counter()
            if self._num_running:
                self._share += (now - self._told_at) / self._num_running
            self._told_at = now
            self._num_running += num_more
            return self._share


class _Job:
    """An operation and the calls of it that run now. Any thread may try to run it."""

    def __init__(self, operation: Operation, batch: _Countdown, meter: _Meter, num_threads: int = 1) -> None:
        self.operation = operation
        self.batch = batch
        self._meter = meter
        self._num_more = num_threads - 1 if operation.is_shared else 0
        self.error: Exception | None = None
        self._num_running = 0
        self._is_spent = False
        self._share_before = 0.0
        self._lock = threading.Lock()

    def run(self) -> Outcome | None:
        """What it came to, where this call was the last to end."""
        if not self._begins():
            return None
        try:
            self.operation.run()
        except Exception as caught:
            self.error = caught
        return self._outcome() if self._ends() else None

    def wants_more(self) -> bool:
        """Whether the thread that took it is to wake another one for it: a thread's waking costs whoever does it."""
        self._num_more -= 1  # one has it at a time
        return self._num_more >= 0 and not self._is_spent

    def _begins(self) -> bool:
        with self._lock:
            if self._is_spent:
                return False
            if not self._num_running:
                self._share_before = self._meter.change(+1)
            self._num_running += 1
            return True

    def _ends(self) -> bool:
        with self._lock:
            self._is_spent = True
            self._num_running -= 1
            return not self._num_running

    def _outcome(self) -> Outcome:
        return Outcome(self.operation, self.error, self._meter.change(-1) - self._share_before)


class ThreadLane:
    """`num_threads` of its own, each by `niceness` more patient than the process where others want the processor.

    Where they are as many as there are processors, each stays on one. `ring` is called by the one that ends a batch.
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
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._must_end = threading.Event()
        self._last: _Countdown | None = None
        self._meter = _Meter()
        homes = [{processor} for processor in sorted(processors())]
        if len(homes) != num_threads:
            homes = [set()] * num_threads
        self._threads = [
            threading.Thread(target=self._loop, args=(home,), name=f"tiers-{name}-{number}", daemon=True)
            for number, home in enumerate(homes)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_idle(self) -> bool:
        return self._last is None or self._last.is_over

    def submit(self, batch: Sequence[Operation]) -> None:
        self._last = countdown = _Countdown(len(batch))
        for operation in batch:
            self._jobs.put(_Job(operation, countdown, self._meter, len(self._threads)))

    def work(self) -> None:
        """The threads do it."""

    def close(self) -> None:
        self._must_end.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _loop(self, home: set[int]) -> None:
        _give_way(self._niceness)
        _stay(home)
        while (job := self._jobs.get()) is not None and not self._must_end.is_set():
            if job.wants_more():
                self._jobs.put(job)
            outcome = job.run()
            if outcome is not None:
                self._finish(outcome)
                if job.batch.ends():
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
                outcome = _Job(operation, _Countdown(1), _Meter()).run()
                assert outcome is not None
                self._finish(outcome)

    def close(self) -> None:
        self._batches.clear()


def processors() -> set[int]:
    """Those that this process may use; none where the system does not tell."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def _stay(home: set[int]) -> None:
    """On those processors, if any are named and they may be used still."""
    if home and sys.platform == "linux":
        with suppress(OSError):
            os.sched_setaffinity(0, home)


def _give_way(niceness: int) -> None:
    """Linux has it for each thread."""
    if niceness and sys.platform == "linux":
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + niceness)
