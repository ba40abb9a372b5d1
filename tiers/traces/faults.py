"""What becomes of a line that is wrong: it ends the reading, or is counted and left out. Nothing is ever guessed."""

from typing import Protocol

from tiers.traces.request import TraceError

KEPT = 20


class Faults(Protocol):
    def tell(self, error: TraceError) -> None:
        """May raise it."""
        ...


class RefuseFaults:
    """The first wrong line ends the reading."""

    def tell(self, error: TraceError) -> None:
        raise error


class CountFaults:
    """For imports: wrong lines are left out, all of them counted, the first told."""

    def __init__(self, num_kept: int = KEPT) -> None:
        self._num_kept = num_kept
        self.count = 0
        self.sentences: list[str] = []

    def tell(self, error: TraceError) -> None:
        self.count += 1
        if len(self.sentences) < self._num_kept:
            self.sentences.append(str(error))
