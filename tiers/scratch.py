"""Memory for what is on its way, a piece for each thread that asks. Knows nothing about what is in it."""

import mmap
import threading


class Scratch:
    """`num_bytes` on whole pages, as files are read best."""

    def __init__(self, num_bytes: int) -> None:
        self._num_bytes = num_bytes
        self._own = threading.local()

    def get(self) -> memoryview:
        """The same at every call of one thread; what was in it may be overwritten."""
        if not hasattr(self._own, "bytes"):
            self._own.bytes = memoryview(mmap.mmap(-1, self._num_bytes))
        found: memoryview = self._own.bytes
        return found
