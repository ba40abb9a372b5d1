"""Where what comes from a file or a network is written on its way to a gpu slot. Knows nothing about who sends it."""

import mmap
import threading
from collections.abc import Callable
from functools import partial

from tiers.pool import BlockPool, copy_bytes

Fill = Callable[[memoryview], None]


class Landing:
    """Into the slot itself where that is host memory; a device is not kept waiting for a file or a network."""

    def __init__(self, pool: BlockPool, slab_bytes: int) -> None:
        self._pool = pool
        self._slab_bytes = slab_bytes
        self._scratch = threading.local()

    def load(self, slot: int, fill: Fill) -> None:
        """By any thread. What is in the slot after `fill` has raised is undefined."""
        if self._pool.is_host_memory:
            self._pool.load(slot, fill)
            return
        scratch = self._own_scratch()
        fill(scratch)
        self._pool.load(slot, partial(copy_bytes, scratch))

    def _own_scratch(self) -> memoryview:
        if not hasattr(self._scratch, "bytes"):
            self._scratch.bytes = memoryview(mmap.mmap(-1, self._slab_bytes))  # aligned, as files are read best
        scratch: memoryview = self._scratch.bytes
        return scratch
