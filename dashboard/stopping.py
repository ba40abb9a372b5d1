"""Whether this process has been asked to stop, and for how long already. Knows nothing about what is still open."""

import time
from collections.abc import Callable

# How long answers may go on, whole or streamed; what is not done by then ends with an error that says why.
ANSWER_SECONDS = 4.0


class Stopping:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at: float | None = None

    def begin(self) -> None:
        """Called in a signal handler; a second time changes nothing."""
        if self._asked_at is None:
            self._asked_at = self._clock()

    def has_begun(self) -> bool:
        return self._asked_at is not None

    def must_end(self) -> bool:
        """Whether an answer has gone on for long enough since then."""
        return self._asked_at is not None and self._clock() - self._asked_at >= ANSWER_SECONDS


process = Stopping()
