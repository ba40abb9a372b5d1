"""The gpu pool on a CUDA device: one tensor. Knows nothing about keys, tokens or which slot is in use.

Transfers run on a stream of their own, which waits for what the model's stream had been asked before.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tiers.config import SlabSpec
from tiers.pool import MemoryPool, copy_bytes

if TYPE_CHECKING:
    import torch


class CudaPool:
    """Slabs in one device tensor [num_blocks, num_bytes]; a resize makes a new one and copies on the device."""

    is_host_memory = False

    def __init__(self, slab: SlabSpec, dtype: "torch.dtype", num_blocks: int, device: "torch.device") -> None:
        import torch

        self._slab_bytes, self._shape, self._dtype = slab.num_bytes, slab.shape, dtype
        self._device = device
        self._slabs = torch.zeros((num_blocks, slab.num_bytes), dtype=torch.uint8, device=device)
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch types it not
        self._staging = torch.empty(slab.num_bytes, dtype=torch.uint8, pin_memory=True)
        self._event: Any = None
        self._busy = threading.Lock()
        self.fence()

    @property
    def num_blocks(self) -> int:
        return self._slabs.shape[0]

    @property
    def tensor(self) -> "torch.Tensor":
        """[num_blocks, *slab.shape] as it is now: another tensor after a resize."""
        return self._slabs.view(self._dtype).view(-1, *self._shape)

    def resize(self, num_blocks: int) -> None:
        import torch

        try:
            larger = torch.zeros((num_blocks, self._slab_bytes), dtype=torch.uint8, device=self._device)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        with self._busy:
            kept = min(num_blocks, self.num_blocks)
            larger[:kept].copy_(self._slabs[:kept])
            torch.cuda.synchronize(self._device)
            self._slabs = larger
            self.fence()

    def read(self, slot: int) -> memoryview:
        """A copy of the slot's bytes."""
        return memoryview(self._slabs[slot].cpu().numpy().data)

    def write(self, slot: int, source: memoryview | bytes) -> None:
        import torch

        self._slabs[slot].copy_(torch.frombuffer(bytearray(source), dtype=torch.uint8))

    def store(self, slot: int, target: memoryview) -> None:
        import torch

        with self._busy, torch.cuda.stream(self._stream):
            self._stream.wait_event(self._event)
            torch.frombuffer(target, dtype=torch.uint8).copy_(self._slabs[slot])
            self._stream.synchronize()

    def store_many(self, pairs: Sequence[tuple[int, int]], host: MemoryPool) -> None:
        for slot, target in pairs:
            self.store(slot, host.read(target))

    def load(self, slot: int, fill: Callable[[memoryview], None]) -> None:
        import torch

        with self._busy:
            fill(memoryview(self._staging.numpy().data))
            with torch.cuda.stream(self._stream):
                self._stream.wait_event(self._event)
                self._slabs[slot].copy_(self._staging, non_blocking=True)
                self._stream.synchronize()

    def load_many(self, pairs: Sequence[tuple[int, int]], host: MemoryPool) -> None:
        for source, slot in pairs:
            self.load(slot, partial(copy_bytes, host.read(source)))

    def move(self, source: int, target: int) -> None:
        self._slabs[target].copy_(self._slabs[source])

    def fence(self) -> None:
        import torch

        event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch types it not
        event.record(torch.cuda.current_stream(self._device))
        self._event = event
