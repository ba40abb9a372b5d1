"""Where what comes from a file or a network is written on its way to a gpu slot. Knows nothing about who sends it."""

from collections.abc import Callable
from functools import partial

from tiers.pool import BlockPool, copy_bytes
from tiers.scratch import Scratch

Fill = Callable[[memoryview], None]


class Landing:
    """Into the slot itself where that is host memory; a device is not kept waiting for a file or a network."""

    def __init__(self, pool: BlockPool, slab_bytes: int) -> None:
        self._pool = pool
        self._scratch = Scratch(slab_bytes)

    def load(self, slot: int, fill: Fill) -> None:
        """By any thread. What is in the slot after `fill` has raised is undefined."""
        if self._pool.is_host_memory:
            self._pool.load(slot, fill)
            return
        scratch = self._scratch.get()
        fill(scratch)
        self._pool.load(slot, partial(copy_bytes, scratch))
