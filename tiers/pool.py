"""Pools of slots, each as large as one block's slab. Know nothing about keys, recency or who uses a slot.

A pool is sized by whoever counts its slots; it only hands out slots and takes them back.
"""

import ctypes
import mmap
import threading
from collections.abc import Callable
from typing import Protocol

import torch

from tiers.config import SlabSpec
from tiers.limits import total_memory

_MAP_NORESERVE = 0x4000  # Linux; not in Python 3.11's mmap


class BlockPool(Protocol):
    """The pool that attention reads. Transfers see a slot as plain bytes."""

    slab: SlabSpec

    def take(self) -> int: ...
    def give_back(self, slot: int) -> None: ...
    def resize(self, num_blocks: int) -> None: ...
    def read(self, slot: int) -> memoryview: ...
    def fill(self, slot: int, reader: Callable[[memoryview], None]) -> None: ...
    def check(self, used: set[int]) -> None: ...


class MemoryPool:
    """Slots in host memory: one reservation of addresses as large as the machine's memory, backed page by page.

    A slot never moves and growing costs nothing; what `resize` gives up goes back to the system at once.
    """

    def __init__(self, slab: SlabSpec, *, max_bytes: int | None = None) -> None:
        self.slab = slab
        page = mmap.PAGESIZE
        # Whole pages a slot, so that one can be given back alone; tiny slabs (tests) lie side by side.
        self.stride = slab.num_bytes if slab.num_bytes < page else -(-slab.num_bytes // page) * page
        self.max_blocks = max(1, (max_bytes or total_memory()) // self.stride)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._map = mmap.mmap(-1, self.max_blocks * self.stride, flags=flags)
        self._bytes = memoryview(self._map)
        self._free: list[int] = []
        self._num_seen = 0

    def as_tensor(self, dtype: torch.dtype) -> torch.Tensor:
        """All slots as one tensor [max_blocks, *slab.shape]; only slots in use have memory behind them."""
        itemsize = dtype.itemsize
        flat = torch.frombuffer(self._map, dtype=dtype, count=self.max_blocks * self.stride // itemsize)
        strides = [1]
        for length in reversed(self.slab.shape[1:]):
            strides.insert(0, strides[0] * length)
        return flat.as_strided((self.max_blocks, *self.slab.shape), (self.stride // itemsize, *strides))

    def take(self) -> int:
        """Raises MemoryError where even the addresses have run out."""
        if self._free:
            return self._free.pop()
        if self._num_seen == self.max_blocks:
            raise MemoryError(f"All {self.max_blocks} slots that this machine's memory could hold are in use.")
        self._num_seen += 1
        return self._num_seen - 1

    def give_back(self, slot: int) -> None:
        self._free.append(slot)

    def resize(self, num_blocks: int) -> None:
        """Give the memory behind unused slots back to the system where more than `num_blocks` have been in use."""
        if self._num_seen <= num_blocks or self.stride < mmap.PAGESIZE:
            return
        for slot in self._free:
            self._map.madvise(mmap.MADV_DONTNEED, slot * self.stride, self.stride)

    def read(self, slot: int) -> memoryview:
        """The slot's bytes themselves, writable."""
        start = slot * self.stride
        return self._bytes[start : start + self.slab.num_bytes]

    def fill(self, slot: int, reader: Callable[[memoryview], None]) -> None:
        """`reader` writes the slot's bytes in place."""
        reader(self.read(slot))

    def check(self, used: set[int]) -> None:
        free = set(self._free)
        assert len(free) == len(self._free), "a slot is twice in the free list"
        assert not free & used, "a slot is free and in use"
        assert len(free) + len(used) == self._num_seen, "free and used slots are not all slots"


class CudaPool:
    """Slots in one CUDA tensor; growing makes a larger one and copies on the device, so both fit for a moment."""

    def __init__(self, slab: SlabSpec, dtype: torch.dtype, num_blocks: int, device: torch.device) -> None:
        self.slab = slab
        self.tensor = torch.empty((num_blocks, *slab.shape), dtype=dtype, device=device)
        self._free = list(range(num_blocks - 1, -1, -1))
        self._moving = threading.Lock()  # a transfer must not write to a tensor that is being replaced

    def take(self) -> int:
        """Raises MemoryError where every slot is in use."""
        if not self._free:
            self.resize(len(self.tensor) + max(64, len(self.tensor) // 8))
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        self._free.append(slot)

    def resize(self, num_blocks: int) -> None:
        """Grow to `num_blocks` slots, or shrink as far as the highest slot in use. Raises torch.OutOfMemoryError."""
        old = len(self.tensor)
        highest_used = max(set(range(old)) - set(self._free), default=-1)
        new = max(num_blocks, highest_used + 1)
        if new == old:
            return
        kept = min(old, new)
        with self._moving:
            tensor = torch.empty((new, *self.slab.shape), dtype=self.tensor.dtype, device=self.tensor.device)
            tensor[:kept].copy_(self.tensor[:kept])
            self.tensor = tensor
        self._free = [slot for slot in self._free if slot < new] + list(range(old, new))

    def read(self, slot: int) -> memoryview:
        """A copy of the slot in host memory."""
        with self._moving:
            host = self.tensor[slot].cpu()
        return memoryview(host.contiguous().view(torch.uint8).flatten().numpy().data)

    def fill(self, slot: int, reader: Callable[[memoryview], None]) -> None:
        """`reader` writes into host memory, which is then copied to the slot."""
        host = torch.empty(self.slab.num_bytes, dtype=torch.uint8)
        reader(memoryview(host.numpy().data))
        with self._moving:
            self.tensor[slot].view(torch.uint8).flatten().copy_(host)

    def check(self, used: set[int]) -> None:
        free = set(self._free)
        assert len(free) == len(self._free), "a slot is twice in the free list"
        assert not free & used, "a slot is free and in use"
        assert len(free) + len(used) == len(self.tensor), "free and used slots are not all slots"


def copy_bytes(target: memoryview, source: memoryview) -> None:
    """memmove without the interpreter's lock, so that the step loop goes on beside it (a slice assignment keeps it)."""
    to = ctypes.addressof(ctypes.c_char.from_buffer(target))
    if source.readonly:
        ctypes.memmove(to, source.tobytes(), len(source))
    else:
        ctypes.memmove(to, ctypes.addressof(ctypes.c_char.from_buffer(source)), len(source))
