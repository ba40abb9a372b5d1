"""What loading a block from one tier takes, as a running estimate. Knows nothing about what it is compared with."""

# The mean of so many; then a sixteenth for each load: one that takes ten times as long moves the estimate by half,
# sixteen others take it back.
NUM_PLAIN = 16
# What is not loaded is not measured. So every eighth request loads four of the blocks that it would have left out.
DECLINES_TO_PROBE = 7
PROBE_BLOCKS = 4


class LoadCost:
    """`seconds` a block: the plain mean of the first loads, later one that forgets; None before the first."""

    __slots__ = ("_num_declined", "_num_seen", "seconds")

    def __init__(self) -> None:
        self._num_seen = self._num_declined = 0
        self.seconds: float | None = None

    def observe(self, seconds: float, times: int) -> None:
        """So many loads took so long each, whether they succeeded or not."""
        self._num_declined = 0
        seen, now = self._num_seen, self._num_seen + times
        kept = seen / min(now, NUM_PLAIN) if seen < NUM_PLAIN else 1.0
        kept *= (1 - 1 / NUM_PLAIN) ** max(0, now - max(seen, NUM_PLAIN))
        self.seconds = seconds + ((self.seconds or 0.0) - seconds) * kept
        self._num_seen = now

    def decline(self) -> None:
        """A request computed what it could have loaded."""
        self._num_declined += 1

    @property
    def is_stale(self) -> bool:
        return self._num_declined >= DECLINES_TO_PROBE
