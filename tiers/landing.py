"""Where what comes from a file or a network is written on its way to a gpu slot. Knows nothing about who sends it."""

from collections.abc import Callable, Sequence
from functools import partial

from tiers.block_reads import BlockReads
from tiers.pool import BlockPool, MemoryPool, copy_bytes
from tiers.scratch import Scratch

Errors = dict[int, Exception]
# Fills targets, those of a portion of all slots, and says what went wrong by index among them.
FillMany = Callable[[slice, Sequence[memoryview]], Errors]


class Landing:
    """Into the slot itself where that is host memory; a device is not kept waiting for a file or a network."""

    def __init__(self, pool: BlockPool, slab_bytes: int) -> None:
        self._pool = pool
        self._scratch = Scratch(slab_bytes)

    def reading(self, files: BlockReads, slots: Sequence[int]) -> Callable[[], None]:
        """What several threads call; `files` have the errors then. What is in a slot that has one is undefined."""
        if isinstance(self._pool, MemoryPool) and self._pool.is_host_memory:
            return files.into(self._pool, slots)

        def read() -> None:
            scratch = self._scratch.get()
            for index in files.each(lambda _: scratch):
                self._pool.load(slots[index], partial(copy_bytes, scratch))

        return read

    def load_many(self, slots: Sequence[int], fill: FillMany) -> Errors:
        """By any thread, from the first to the last. What is in a slot that has an error is undefined."""
        if self._pool.is_host_memory:
            return fill(slice(None), [self._pool.read(slot) for slot in slots])
        errors: Errors = {}
        for index, slot in enumerate(slots):
            scratch = self._scratch.get()
            if wrong := fill(slice(index, index + 1), [scratch]):
                errors[index] = wrong[0]
            else:
                self._pool.load(slot, partial(copy_bytes, scratch))
        return errors
