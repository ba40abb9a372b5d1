"""Blocks as values on a Valkey or Redis server, shared by all engines of one layout. Knows nothing about tiers' books.

Everything of a layout lies under `ts:kv:<version>:<digest>:`; nothing else on the server is touched. A value is written
before it is in the index and verified when it is read.
"""

import time
from collections.abc import Callable, Sequence

from tiers.books.tenants import NOBODY
from tiers.breaker import Breaker
from tiers.config import SlabSpec
from tiers.errors import UnreachableError
from tiers.keys import BlockKey
from tiers.names import Compression
from tiers.remote_line import SLOWEST_BYTES_PER_SECOND, Line
from tiers.remote_look import Look, RemoteEntry
from tiers.remote_reader import Land, RemoteReader
from tiers.remote_room import Room
from tiers.remote_space import Space
from tiers.remote_wire import Wire
from tiers.remote_writer import Outgoing, RemoteWriter

NO_LIMIT = 1 << 50


class RemoteStore:
    """`value_bytes` is what each block takes. One thread may read while another does the rest.

    Nothing takes longer than `timeout_seconds`, but for a full look's pages and hundreds of keys: those have it each.
    """

    def __init__(
        self,
        url: str,
        slab: SlabSpec,
        block_size: int,
        fingerprint: str,
        compression: Compression = Compression.NONE,
        *,
        ttl_seconds: int = 86_400,
        timeout_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        space = Space.of(slab, block_size, fingerprint, compression, ttl_seconds)
        self.prefix = space.prefix
        self.value_bytes = space.value_bytes
        self.slab_bytes = slab.num_bytes
        self.breaker = Breaker(clock)
        self._lines = [
            Line(way, Wire(url, clock), self.breaker, timeout_seconds, clock) for way in ("reading", "writing")
        ]
        self._reader = RemoteReader(space, self._lines[0])
        self._writer = RemoteWriter(space, self._lines[1], lambda: clock() + timeout_seconds)
        self._has_failed = False
        self._timeout = timeout_seconds
        self._clock = clock

    # -- as every store ------------------------------------------------------------------------------------------------
    def write(self, key: BlockKey, parent_key: BlockKey, position: int, slab: memoryview, tenant: str = NOBODY) -> None:
        [error] = self.write_many([Outgoing(key, parent_key, position, slab, tenant)], NO_LIMIT)
        if error is not None:
            raise error

    def read(self, key: BlockKey, target: memoryview) -> None:
        [error] = self.read_many([key], lambda portion, fill: fill(slice(None), [target]))
        if error is not None:
            raise error

    def remove(self, key: BlockKey) -> None:
        self.remove_many([key])

    def scan(self) -> Sequence[RemoteEntry]:
        self.start_over()
        return self.look().news.used

    # -- many at a time ------------------------------------------------------------------------------------------------
    def read_many(
        self, keys: Sequence[BlockKey], land: Land, not_after: float = float("inf")
    ) -> list[Exception | None]:
        """See RemoteReader."""
        errors = self._reader.read_many(keys, land, not_after)
        self._has_failed |= any(isinstance(error, UnreachableError) for error in errors)
        return errors

    def write_many(self, blocks: Sequence[Outgoing], max_blocks: int) -> list[OSError | None]:
        """See RemoteWriter."""
        errors = self._writer.write_many(blocks, max_blocks)
        self._has_failed |= any(isinstance(error, UnreachableError) for error in errors)
        return errors

    def touch_many(self, keys: Sequence[BlockKey]) -> None:
        self._writer.touch_many(keys)

    def remove_many(self, keys: Sequence[BlockKey]) -> None:
        self._writer.remove_many(keys)

    def look(self, *, is_probe: bool = False) -> Look:
        """What has changed since the last look; all, if anything has failed since. Raises UnreachableError."""
        is_full, self._has_failed = self._has_failed, False
        try:
            return self._writer.look(is_full=is_full, is_probe=is_probe)
        except UnreachableError:
            self._has_failed = True
            raise

    def measure(self, *, is_probe: bool = False) -> Room:
        """What the server says of its memory. Raises UnreachableError."""
        return self._writer.measure(is_probe=is_probe)

    @property
    def is_local(self) -> bool:
        """Whether the server takes its memory from this machine."""
        return self._lines[0].wire.is_local

    def start_over(self) -> None:
        """The next look is a full one."""
        self._has_failed = True

    def deadline(self, num_bytes: int) -> float:
        """When so many bytes, asked for now, are given up."""
        return self._clock() + self._timeout + num_bytes / SLOWEST_BYTES_PER_SECOND

    def close(self) -> None:
        """What is under way fails, and all that is asked later."""
        for line in self._lines:
            line.close()
