"""What keeps blocks outside of memory must do, whether it is a folder or a server. Knows nothing about tiers' books."""

from collections.abc import Sequence
from typing import Protocol

from tiers.books.tenants import NOBODY
from tiers.keys import BlockKey


class Entry(Protocol):
    """A block that is there. `position` is its index in its prompt, `tenant` whose it is."""

    @property
    def key(self) -> BlockKey: ...
    @property
    def parent_key(self) -> BlockKey: ...
    @property
    def position(self) -> int: ...
    @property
    def tenant(self) -> str: ...


class BlockStore(Protocol):
    """Written whole or not at all, verified when read. Every layout (model, dtype, shape, block size, compression) is a
    world apart.

    Methods may take long; they are called by transfer threads.
    """

    def write(self, key: BlockKey, parent_key: BlockKey, position: int, slab: memoryview, tenant: str = NOBODY) -> None:
        """Raises OSError if the block is not there now; what was there before under this key may be gone."""

    def read(self, key: BlockKey, target: memoryview) -> None:
        """Fill `target`. Raises CorruptError (GoneError: nothing is there) or OSError; `target` is undefined then."""

    def remove(self, key: BlockKey) -> None:
        """No effect if it is not there."""

    def scan(self) -> Sequence[Entry]:
        """All blocks of this layout, the one that was used longest ago first."""
