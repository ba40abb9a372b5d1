"""Cuts a text that comes in pieces at the first stop string. Knows nothing about tokens."""

from collections.abc import Sequence


class StopCutter:
    """Gives out what cannot be part of a stop string; joined, that is the text up to the first stop string.

    First means the one that is complete first, the longest of those that end together: whatever the pieces are, the
    cut is the same.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self._held = ""
        self.is_stopped = False

    def push(self, text: str) -> str:
        """The text that is settled now; empty after a stop string."""
        if self.is_stopped:
            return ""
        self._held += text
        found = [(place + len(stop), place) for stop in self._stop if (place := self._held.find(stop)) >= 0]
        self.is_stopped = bool(found)
        cut = min(found)[1] if found else len(self._held) - self._num_held_back()
        settled, self._held = self._held[:cut], "" if found else self._held[cut:]
        return settled

    def finish(self) -> str:
        """What was held back; the text ends without having become a stop string."""
        settled, self._held = self._held, ""
        return settled

    def _num_held_back(self) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = min(max(map(len, self._stop), default=1) - 1, len(self._held))
        return next((n for n in range(longest, 0, -1) if self._begins_a_stop(self._held[-n:])), 0)

    def _begins_a_stop(self, end: str) -> bool:
        return any(stop.startswith(end) for stop in self._stop)
