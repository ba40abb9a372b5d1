"""The threads that move bytes, by what may wait for what, and their outcomes handed to the thread that keeps the books.

Knows nothing about blocks.
"""

from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue

from tiers.lanes import InlineLane, Lane, Operation, Outcome, ThreadLane, nobody_asks, processors

# Files that are read at once. A device's queue is full with four of 0.7 MiB; more threads wait for the interpreter.
# Where there are fewer processors, but more than one, each has one reader and keeps it: a busy system finds no idle
# processor for a thread that is woken, and all readers were seen to share one for 3 ms, the other doing nothing.
MAX_READERS = 4
# Whoever waits for a step comes before what is stored for later: with as many processes as processors beside them,
# steps took 1.3 times as long instead of 1.56, and more than half as much was stored.
NICENESS = 5


class Transfers:
    """The lanes: `near` for copies in memory, `read` and `write` for files, `fetch` and `send` for a server, if any.

    With fewer than two threads they are the same.
    """

    def __init__(self, num_threads: int, ring: Callable[[], None], *, has_files: bool, has_server: bool) -> None:
        self._finished: SimpleQueue[Outcome] = SimpleQueue()
        self.num_pending = 0
        finish = self._finished.put
        self._near: Lane = ThreadLane("near", finish, ring) if num_threads else InlineLane(finish)
        kinds = {"read": (_num_readers(), 0), "write": (1, NICENESS)} if has_files else {}
        kinds |= {"fetch": (1, 0), "send": (1, NICENESS)} if has_server else {}
        others = {name: ThreadLane(name, finish, ring, *kind) for name, kind in kinds.items() if num_threads > 1}
        self._read, self._write = (others.get(name, self._near) for name in ("read", "write"))
        self._fetch, self._send = (others.get(name, self._near) for name in ("fetch", "send"))
        self._lanes: list[Lane] = [self._near, *others.values()]

    def submit_near(self, batch: Sequence[Operation]) -> None:
        self._submit(self._near, batch)

    def submit_read(self, batch: Sequence[Operation]) -> None:
        """As `submit_fetch`; in no order, several at once."""
        self._submit_after_near(self._read, batch)

    def submit_write(self, batch: Sequence[Operation]) -> None:
        self._submit(self._write, batch)

    def submit_fetch(self, batch: Sequence[Operation]) -> None:
        """Begins when all that was submitted to `near` before is done: the slots are free to be written then."""
        self._submit_after_near(self._fetch, batch)

    def submit_send(self, batch: Sequence[Operation]) -> None:
        self._submit(self._send, batch)

    def _submit(self, lane: Lane, batch: Sequence[Operation]) -> None:
        if batch:
            self.num_pending += len(batch)
            lane.submit(batch)

    def _submit_after_near(self, lane: Lane, batch: Sequence[Operation]) -> None:
        if self._near.is_idle:
            self._submit(lane, batch)
        elif batch:
            self._submit(self._near, [Operation(partial(lane.submit, batch), nobody_asks)])
            self.num_pending += len(batch)

    def apply(self) -> bool:
        """Tell what has finished; True if there was something. The only place where `done` is called."""
        self._near.work()
        has_applied = False
        while not self._finished.empty():  # nobody else takes from it
            outcome = self._finished.get_nowait()
            has_applied = True
            self.num_pending -= 1
            outcome.operation.done(outcome.error, outcome.seconds)
        return has_applied

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


def _num_readers() -> int:
    num_processors = len(processors())
    return min(MAX_READERS, num_processors) if num_processors > 1 else MAX_READERS
