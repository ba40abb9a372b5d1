"""How many files of blocks that have left are kept for blocks on their way: never more than there are of these.

A file that is written over has its pages and its place on the disk already: a third of the time of a new one, and
of an old one's removal. Knows nothing about files; counts what the writing lane does, first in, first out.
"""


class Spares:
    """By the thread that keeps the books. `num_kept` are set aside once all that was submitted is done."""

    def __init__(self) -> None:
        self.num_kept = 0
        self._num_writing = 0

    def submit(self, num_leaving: int, num_writes: int, num_coming: int) -> tuple[int, int]:
        """Files to be set aside, of those that leave, and how many to drop of those that were, after so many writes.

        `num_coming` are blocks on their way that are wanted still, also if their writes are submitted now or were
        before.
        """
        self._num_writing += num_writes
        num_to_come = max(0, num_coming - self._num_writing)
        num_aside = min(num_leaving, max(0, num_to_come + num_writes - self.num_kept))
        num_left = max(0, self.num_kept + num_aside - num_writes)
        self.num_kept = min(num_left, num_to_come)
        return num_aside, num_left - self.num_kept

    def written(self) -> None:
        """One of the writes that were submitted has ended, or was skipped."""
        self._num_writing -= 1
