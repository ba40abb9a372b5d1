"""Reads blocks from a server, many at a time, from the socket to where they belong. Knows nothing about the index."""

from collections.abc import Callable, Sequence
from functools import partial

import xxhash

from tiers.block_format import HEADER_BYTES
from tiers.errors import CorruptError, GoneError, UnreachableError
from tiers.keys import BlockKey
from tiers.remote_line import Line
from tiers.remote_space import Space

Fill = Callable[[memoryview], None]
Land = Callable[[int, Fill], None]

# Asked for and not received yet. More is not faster, and others of the server wait for each: a millisecond or two.
WINDOW_BYTES = 8 << 20


class RemoteReader:
    def __init__(self, space: Space, line: Line) -> None:
        self._space = space
        self._line = line
        self._window = max(2, WINDOW_BYTES // space.value_bytes)

    def read_many(self, keys: Sequence[BlockKey], land: Land, not_after: float) -> list[Exception | None]:
        """For each block, what went wrong. `land` is called with the index of each that comes, and has to call `fill`
        once with the memory that it shall be in; what is there after an error is undefined.
        """
        errors: list[Exception | None] = []
        try:
            with self._line.use(not_after, num_bytes=len(keys) * self._space.value_bytes) as deadline:
                asked = 0
                for index, key in enumerate(keys):
                    if index + self._window // 2 >= asked:  # the server shall always have something to send
                        self._ask(keys[asked : index + self._window], deadline)
                        asked = index + self._window
                    errors.append(self._take(key, partial(land, index), deadline))
        except UnreachableError as error:
            errors += [error] * (len(keys) - len(errors))
        return errors

    def _ask(self, keys: Sequence[BlockKey], deadline: float) -> None:
        if keys:
            self._line.wire.send([("GET", self._space.value(key)) for key in keys], deadline)

    def _take(self, key: BlockKey, land: Callable[[Fill], None], deadline: float) -> CorruptError | None:
        wire, expected = self._line.wire, self._space.value_bytes
        length = wire.value_length(deadline)
        if length is None:
            return GoneError("the server has no such value")
        if length != expected:
            wire.skip(length, deadline)
            wire.end_value(deadline)
            return CorruptError(f"the value has {length:,} bytes; expected {expected:,}")
        header = bytearray(HEADER_BYTES)
        wire.receive(memoryview(header), deadline)
        try:
            land(partial(self._fill, key, bytes(header), deadline))
        except CorruptError as error:
            return error
        return None

    def _fill(self, key: BlockKey, header: bytes, deadline: float, target: memoryview) -> None:
        """The checksum follows what comes in pieces that the processor still has at hand."""
        layout, digest = self._space.layout, xxhash.xxh3_128()
        payload = layout.codec.landing(target)
        self._line.wire.receive(payload, deadline, digest.update)
        self._line.wire.end_value(deadline)
        layout.verify(header, key, digest.digest())
        layout.codec.decode(payload, target)
