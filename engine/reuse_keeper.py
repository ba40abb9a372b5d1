"""Keeps the reuse curve's order of use over restarts: read at a start, written every minute and at a stop.

On a thread of its own: a disk that is slow never holds a step. Knows nothing about what is in the order.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from tiers.whatif.shards import Sample
from tiers.whatif.shards_file import SampleFileError, load_sample, save_sample

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0


class ReuseKeeper:
    """`path` is written for `identity`, 16 bytes: an order of another model's blocks is not read."""

    def __init__(self, path: Path, identity: bytes, every_seconds: float = EVERY_SECONDS) -> None:
        self._path = path
        self._identity = identity
        self._every_seconds = every_seconds
        self._read: Callable[[], Sample | None] = lambda: None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reuse-keeper", daemon=True)

    def load(self) -> Sample | None:
        """None where there is none that can be used; a curve then starts empty."""
        try:
            return load_sample(self._path, self._identity)
        except FileNotFoundError:
            return None
        except (SampleFileError, OSError) as error:
            log.warning("the reuse curve starts empty: %s: %s", self._path, error)
            return None

    def start(self, read: Callable[[], Sample | None]) -> None:
        self._read = read
        self._thread.start()

    def stop(self) -> None:
        """Writes a last time; without a start does nothing."""
        if self._thread.is_alive():
            self._stopped.set()
            self._thread.join()
            self.save()

    def save(self) -> None:
        """A disk that cannot be written costs the order, and nothing else."""
        try:
            if (sample := self._read()) is not None:
                save_sample(self._path, self._identity, sample)
        except Exception as error:
            log.warning("the reuse curve's order could not be kept: %s: %s", type(error).__name__, error)

    def _run(self) -> None:
        while not self._stopped.wait(self._every_seconds):
            self.save()
