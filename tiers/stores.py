"""Where slower tiers keep bytes: the interface, and the `cpu` tier's store over a memory pool.

Knows nothing about recency or sizes: it keeps what it is given until it is told to delete it.
"""

from typing import Protocol

from tiers.config import SlabSpec
from tiers.keys import BlockKey
from tiers.pool import BlockPool, MemoryPool, copy_bytes

NO_SLOT = -1


class Store(Protocol):
    """`take` and `give_back` run on the stepping thread, the copies on transfer threads. Copies raise OSError or
    CorruptError; a save that has failed keeps nothing. `has_files`: deleting takes time, so it is a transfer, too."""

    has_files: bool

    def take(self) -> int:
        """A place for one block; changes state. Raises MemoryError."""
        ...

    def give_back(self, slot: int) -> None:
        """The place is free again; its bytes may be overwritten. Changes state."""
        ...

    def resize(self, num_blocks: int) -> None:
        """Memory beyond so many blocks may go back to the system."""
        ...

    def save(self, slot: int, key: BlockKey, parent_key: BlockKey, data: memoryview) -> None:
        """Copies a slab in; returns when it is whole."""
        ...

    def load(self, slot: int, key: BlockKey, pool: BlockPool, pool_slot: int) -> None:
        """Copies a slab out into the gpu pool."""
        ...

    def view(self, slot: int, key: BlockKey) -> memoryview:
        """The slab's bytes, for a store to a slower tier; valid until `give_back`."""
        ...

    def delete(self, slot: int, key: BlockKey) -> None:
        """Removes the bytes (on a transfer thread); changes state. Nothing happens if they are not there."""
        ...


class CpuStore:
    """Host memory: a slot of a MemoryPool for each block."""

    has_files = False

    def __init__(self, slab: SlabSpec, *, max_bytes: int | None = None) -> None:
        self._pool = MemoryPool(slab, max_bytes=max_bytes)

    def take(self) -> int:
        return self._pool.take()

    def give_back(self, slot: int) -> None:
        self._pool.give_back(slot)

    def resize(self, num_blocks: int) -> None:
        self._pool.resize(num_blocks)

    def save(self, slot: int, key: BlockKey, parent_key: BlockKey, data: memoryview) -> None:
        copy_bytes(self._pool.read(slot), data)

    def load(self, slot: int, key: BlockKey, pool: BlockPool, pool_slot: int) -> None:
        source = self._pool.read(slot)
        pool.fill(pool_slot, lambda target: copy_bytes(target, source))

    def view(self, slot: int, key: BlockKey) -> memoryview:
        return self._pool.read(slot)

    def delete(self, slot: int, key: BlockKey) -> None:
        pass

    def check(self, used: set[int]) -> None:
        self._pool.check(used)
