"""Reads blocks from a server, many at a time, from the socket to where they belong. Knows nothing about the index."""

from collections.abc import Callable, Sequence
from functools import partial

import xxhash

from tiers.books.header import HEADER_BYTES
from tiers.errors import CorruptError, GoneError, UnreachableError
from tiers.keys import BlockKey
from tiers.landing import Errors, FillMany
from tiers.remote_line import Line
from tiers.remote_space import Space
from tiers.remote_values import Value

Land = Callable[[slice, FillMany], Errors]
Outcomes = list[Exception | None]

# Two of them are asked for and not received yet. More is not faster, and others of the server wait for them: a
# millisecond or two.
PORTION_BYTES = 6 << 20


class RemoteReader:
    def __init__(self, space: Space, line: Line) -> None:
        self._space = space
        self._line = line
        self._portion = max(1, PORTION_BYTES // space.value_bytes)

    def read_many(self, keys: Sequence[BlockKey], land: Land, not_after: float) -> Outcomes:
        """For each block, what went wrong. `land` is called with each portion of them in turn, and has to call `fill`
        with the memory that these shall be in, from the first to the last; what is there after an error is undefined.
        """
        outcomes: Outcomes = []
        try:
            with self._line.use(not_after, num_bytes=len(keys) * self._space.value_bytes) as deadline:
                asked = 0
                for start in range(0, len(keys), self._portion):
                    end = start + self._portion
                    self._ask(keys[asked : end + self._portion], deadline)  # the server shall always have some to send
                    asked = end + self._portion
                    portion = slice(start, end)
                    land(portion, partial(self._fill, keys[portion], deadline, outcomes))
        except UnreachableError as error:
            outcomes += [error] * (len(keys) - len(outcomes))
        return outcomes

    def _ask(self, keys: Sequence[BlockKey], deadline: float) -> None:
        if keys:
            self._line.wire.send([("GET", self._space.value(key)) for key in keys], deadline)

    def _fill(
        self, keys: Sequence[BlockKey], deadline: float, outcomes: Outcomes, part: slice, targets: Sequence[memoryview]
    ) -> Errors:
        """Of the keys that part, whose values are the next that come. Outcomes are added also if the rest fails."""
        keys, before = keys[part], len(outcomes)
        codec = self._space.layout.codec
        size = len(keys) if codec.is_plain else 1  # what is compressed has one place to land
        while (done := len(outcomes) - before) < len(keys):
            group = slice(done, done + size)
            self._take(keys[group], targets[group], deadline, outcomes)
        return {index: error for index, error in enumerate(outcomes[before:]) if error is not None}

    def _take(
        self, keys: Sequence[BlockKey], targets: Sequence[memoryview], deadline: float, outcomes: Outcomes
    ) -> None:
        """Those that come as they should, all at once; what is something else, or encrypted, by itself."""
        payloads = [self._space.layout.codec.landing(target) for target in targets]
        taken: list[Value] = []
        try:
            self._line.wire.receive_values(self._space.value_bytes, HEADER_BYTES, payloads, deadline, taken)
        finally:
            for key, payload, target, value in zip(keys, payloads, targets, taken, strict=False):
                outcomes.append(self._check(key, payload, target, *value))
        if len(taken) < len(keys):
            odd = len(taken)
            outcomes.append(self._take_one(keys[odd], payloads[odd], targets[odd], deadline))

    def _take_one(self, key: BlockKey, payload: memoryview, target: memoryview, deadline: float) -> CorruptError | None:
        """The checksum follows what comes in pieces that the processor still has at hand."""
        wire, expected = self._line.wire, self._space.value_bytes
        length = wire.value_length(deadline)
        if length is None:
            return GoneError("the server has no such value")
        if length != expected:
            wire.skip(length, deadline)
            wire.end_value(deadline)
            return CorruptError(f"the value has {length:,} bytes; expected {expected:,}")
        header, digest = bytearray(HEADER_BYTES), xxhash.xxh3_128()
        wire.receive(memoryview(header), deadline)
        wire.receive(payload, deadline, digest.update)
        wire.end_value(deadline)
        return self._check(key, payload, target, bytes(header), digest.digest())

    def _check(
        self, key: BlockKey, payload: memoryview, target: memoryview, header: bytes, digest: bytes
    ) -> CorruptError | None:
        try:
            self._space.layout.verify(header, key, digest)
        except CorruptError as error:
            return error
        self._space.layout.codec.decode(payload, target)
        return None
