"""A way to the server for one thread: a connection, a time limit for each use, and the breaker before it.

Knows nothing about blocks. What goes wrong in a use becomes UnreachableError, with a reason in words and no password.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tiers.breaker import Breaker
from tiers.errors import CorruptError, NoRoomError, UnreachableError
from tiers.remote_wire import Wire

# A server that reads slower than this is not waited for, however much was asked of it.
SLOWEST_BYTES_PER_SECOND = 64 << 20


class Line:
    """`way` names it to the breaker."""

    def __init__(
        self, way: str, wire: Wire, breaker: Breaker, timeout_seconds: float, clock: Callable[[], float]
    ) -> None:
        self.wire = wire
        self._way = way
        self._breaker = breaker
        self._timeout = timeout_seconds
        self._clock = clock
        self._is_closed = False

    def close(self) -> None:
        """From any thread, for good."""
        self._is_closed = True
        self.wire.close()

    @contextmanager
    def use(self, not_after: float = float("inf"), *, num_bytes: int = 0, is_probe: bool = False) -> Iterator[float]:
        """Connected; gives the deadline for what is done within. Raises UnreachableError, also for what fails within.

        Where many bytes are asked for, they are given the time that they need at the least speed.
        CorruptError and NoRoomError within say nothing against the server: they pass.
        """
        now = self._clock()
        if self._is_closed:
            raise UnreachableError("it is closed")
        if now >= not_after:
            raise UnreachableError("it waited too long for its turn")
        if not is_probe:
            self._breaker.check()
        deadline = min(not_after, now + self._timeout + num_bytes / SLOWEST_BYTES_PER_SECOND)
        try:
            self.wire.open(deadline)
            yield deadline
        except (CorruptError, NoRoomError):
            self._breaker.succeeded(self._way)
            raise
        except Exception as error:
            self.wire.close()
            why = (
                "the server did not answer in time"
                if isinstance(error, TimeoutError)
                else str(error) or type(error).__name__
            )
            self._breaker.failed(self._way, why)
            raise UnreachableError(why) from error
        else:
            self._breaker.succeeded(self._way)
