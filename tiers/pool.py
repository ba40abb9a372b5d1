"""The gpu pool's interface, and the pool in host memory. Slots are integers; what is in them is bytes.

Knows nothing about keys, tokens or which slot is in use.
"""

import mmap
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np
import psutil

from tiers.books.compiled import Ints64
from tiers.config import SlabSpec
from tiers.copying import as_rows, copy_rows

if TYPE_CHECKING:
    import torch

MAP_NORESERVE = 0x4000  # Linux; mmap does not name it


class BlockPool(Protocol):
    """Slabs by slot, 0 … num_blocks − 1. `store` and `load` are called by transfer threads, the rest by the owner's."""

    @property
    def num_blocks(self) -> int: ...

    @property
    def is_host_memory(self) -> bool: ...

    def resize(self, num_blocks: int) -> None:
        """Slots below the smaller size keep their content. Raises MemoryError, and changes nothing, if it cannot."""

    def read(self, slot: int) -> memoryview:
        """A slot's bytes: in place and writable where that is host memory, else a copy."""

    def store(self, slot: int, target: memoryview) -> None:
        """Copy a slot out, into host memory."""

    def store_many(self, pairs: Sequence[tuple[int, int]], host: "MemoryPool") -> None:
        """Copy slots out, each into a slot of `host`: (slot here, slot there)."""

    def load(self, slot: int, fill: Callable[[memoryview], None]) -> None:
        """Let `fill` write a slot's bytes; if it raises, the slot's content is undefined."""

    def load_many(self, pairs: Sequence[tuple[int, int]], host: "MemoryPool") -> None:
        """Copy slots of `host` in: (slot there, slot here)."""

    def move(self, source: int, target: int) -> None:
        """Copy a slot inside the pool."""

    def fence(self) -> None:
        """What the caller's thread has asked of the device so far comes before transfers that begin later."""


def copy_bytes(source: memoryview, target: memoryview) -> None:
    """numpy lets go of the interpreter lock while it copies; a slice assignment would not."""
    np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))


class MemoryPool:
    """Slabs in host memory. Address space is reserved once, as much as the machine has memory unless `max_bytes` says
    less; pages come when they are first written. So slots never move, a tensor over the pool stays valid, and resizing
    is instant in both directions.
    """

    is_host_memory = True

    def __init__(self, slab: SlabSpec, num_blocks: int = 0, *, max_bytes: int | None = None) -> None:
        self._slab_bytes, self._shape = slab.num_bytes, slab.shape
        wanted = (max_bytes or psutil.virtual_memory().total) // slab.num_bytes
        self.num_blocks = num_blocks
        self._map, self.max_blocks = self._reserve(max(wanted, num_blocks, 1), max(num_blocks, 1))
        self._bytes = memoryview(self._map)
        self._blocks = as_rows(np.frombuffer(self._map, np.uint8), self.max_blocks)
        # A first touch costs a fault a page, 16 µs each on a virtual machine: 3 ms a block of 0.7 MiB, which is copied
        # in 0.1 ms. Of 2 MiB pages there is one for three blocks. (Where the system has none, nothing is lost.)
        with suppress(OSError):
            self._map.madvise(mmap.MADV_HUGEPAGE)

    def _reserve(self, wanted_blocks: int, needed_blocks: int) -> tuple[mmap.mmap, int]:
        """Where the system reserves only what it can back, the pool cannot grow past its first size."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        try:
            return mmap.mmap(-1, wanted_blocks * self._slab_bytes, flags=flags), wanted_blocks
        except OSError:
            return mmap.mmap(-1, needed_blocks * self._slab_bytes, flags=flags), needed_blocks

    def resize(self, num_blocks: int) -> None:
        if num_blocks > self.max_blocks:
            raise MemoryError(f"{num_blocks:,} blocks were asked for; {self.max_blocks:,} is what could be reserved")
        self._give_pages_back(num_blocks, self.num_blocks)
        self.num_blocks = num_blocks

    def read(self, slot: int) -> memoryview:
        """The slot's bytes in place, writable."""
        start = slot * self._slab_bytes
        return self._bytes[start : start + self._slab_bytes]

    def addresses(self, slots: Sequence[int]) -> Ints64:
        """Where the slots' bytes lie; slots never move."""
        return np.array(slots, np.int64) * self._slab_bytes + self._blocks.ctypes.data

    def write(self, slot: int, source: memoryview | bytes) -> None:
        copy_bytes(memoryview(source), self.read(slot))

    def store(self, slot: int, target: memoryview) -> None:
        copy_bytes(self.read(slot), target)

    def store_many(self, pairs: Sequence[tuple[int, int]], host: "MemoryPool") -> None:
        host.load_many(pairs, self)

    def load(self, slot: int, fill: Callable[[memoryview], None]) -> None:
        fill(self.read(slot))

    def load_many(self, pairs: Sequence[tuple[int, int]], host: "MemoryPool") -> None:
        copy_rows(host._blocks, self._blocks, pairs)

    def move(self, source: int, target: int) -> None:
        copy_bytes(self.read(source), self.read(target))

    def fence(self) -> None:
        """Host memory is written when the call returns."""

    def discard(self, slot: int) -> None:
        """The slot's content is no longer needed: its whole pages go back to the system."""
        self._give_pages_back(slot, slot + 1)

    def _give_pages_back(self, first_slot: int, end_slot: int) -> None:
        start = -(-first_slot * self._slab_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        end = end_slot * self._slab_bytes // mmap.PAGESIZE * mmap.PAGESIZE
        if end > start:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def as_tensor(self, dtype: "torch.dtype") -> "torch.Tensor":
        """One tensor [max_blocks, *slab.shape] over the whole reservation, the same at every size."""
        import torch

        return torch.frombuffer(self._map, dtype=dtype).view(self.max_blocks, *self._shape)
