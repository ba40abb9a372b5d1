"""Copies beside the step loop: each runs on a worker thread; its outcome is applied by whoever calls `finished()`.

Knows nothing about blocks. Loads and stores of a level have a lane (one thread) each: a load never queues behind
stores, and what happens within one lane happens in order.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Literal

Direction = Literal["load", "store"]
# Called with the error, or None, and the seconds that the work took.
Outcome = Callable[[BaseException | None, float], None]


class Transfers:
    """Work under way. All methods but the workers' own are called from the stepping thread."""

    def __init__(self) -> None:
        self.num_under_way = 0
        self.on_done: Callable[[], None] = lambda: None
        self._lanes: dict[tuple[int, Direction], ThreadPoolExecutor] = {}
        self._done: SimpleQueue[tuple[Outcome, BaseException | None, float]] = SimpleQueue()

    def start(self, level: int, direction: Direction, work: Callable[[], None], outcome: Outcome) -> None:
        """Run `work` on the lane; `outcome` is called on the stepping thread later, also if `work` raised."""
        lane = self._lanes.get((level, direction))
        if lane is None:
            name = f"tier-{level}-{direction}"
            lane = self._lanes[level, direction] = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.num_under_way += 1
        lane.submit(_timed, work).add_done_callback(lambda future: self._finish(future, outcome))

    def finished(self) -> Iterator[Callable[[], None]]:
        """What is left to do for each copy that has ended since the last call."""
        while True:
            try:
                outcome, error, seconds = self._done.get_nowait()
            except Empty:
                return
            self.num_under_way -= 1
            yield lambda outcome=outcome, error=error, seconds=seconds: outcome(error, seconds)  # type: ignore[misc]

    def close(self) -> None:
        """Wait for the work under way and end the threads."""
        for lane in self._lanes.values():
            lane.shutdown(wait=True)
        self._lanes.clear()

    def _finish(self, future: "Future[float]", outcome: Outcome) -> None:
        error = future.exception()
        self._done.put((outcome, error, 0.0 if error else future.result()))
        self.on_done()


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
