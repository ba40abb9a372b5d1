"""Stores blocks on a server, removes them and follows its index: all that changes or needs an order. One thread.

The limits are kept here: the number of blocks by whoever stores, their age by whoever looks, and the server's memory,
as it was told at the last look, less what was written since.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from tiers import remote_scripts as scripts
from tiers.books.tenants import NOBODY
from tiers.errors import NoRoomError, UnreachableError
from tiers.keys import BlockKey
from tiers.remote_line import Line
from tiers.remote_look import Index, Look, pack_place
from tiers.remote_room import Room
from tiers.remote_space import Space
from tiers.remote_wire import Reply, ServerError

# Keys in one script: others of the server wait for it, a fraction of a millisecond.
SCRIPT_KEYS = 500


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A block to be stored."""

    key: BlockKey
    parent_key: BlockKey
    position: int
    slab: memoryview
    tenant: str = NOBODY


class RemoteWriter:
    def __init__(self, space: Space, line: Line, new_deadline: Callable[[], float]) -> None:
        self._space = space
        self._line = line
        self._new_deadline = new_deadline
        self._index = Index()
        self._num_opened = 0
        self._num_trimmed = 0
        self._room_bytes: int | None = None

    def write_many(self, blocks: Sequence[Outgoing], max_blocks: int) -> list[OSError | None]:
        """For each block, why it is not there now. Blocks beyond `max_blocks` leave, the longest unused first."""
        try:
            with self._line.use() as deadline:
                return self._write(blocks, max_blocks, deadline)
        except UnreachableError as error:
            return [error] * len(blocks)

    def touch_many(self, keys: Sequence[BlockKey]) -> None:
        """They were used just now, the first one longest ago. Raises UnreachableError."""
        for batch in _batches(keys):
            with self._line.use() as deadline:
                match self._run(scripts.TOUCH, *batch, deadline=deadline):
                    case [bytes(first), bytes(last)]:
                        self._index.stamped(int(first), int(last))

    def remove_many(self, keys: Sequence[BlockKey]) -> None:
        """Raises UnreachableError."""
        for batch in _batches(keys):
            with self._line.use() as deadline:
                num_removed = self._run(scripts.REMOVE, *batch, deadline=deadline)
                assert isinstance(num_removed, int)
                self._gained(num_removed)

    def look(self, *, is_full: bool, is_probe: bool) -> Look:
        """What has changed since the last look; all that is there, also after a new connection.

        Raises UnreachableError.
        """
        with self._line.use(is_probe=is_probe):
            if is_full or self._num_opened != self._line.wire.num_opened:
                self._index.forget()
            self._num_opened = self._line.wire.num_opened
            news = self._index.look(self._ask)
            room = self._measure(news.num_blocks, self._new_deadline())
        trimmed, self._num_trimmed = self._num_trimmed, 0
        return Look(news, trimmed, room)

    def measure(self, *, is_probe: bool) -> Room:
        """The server's memory alone. Raises UnreachableError."""
        with self._line.use(is_probe=is_probe) as deadline:
            num_blocks = self._line.wire.call("ZCARD", self._space.index, deadline=deadline)
            return self._measure(num_blocks if isinstance(num_blocks, int) else 0, deadline)

    # -- details -----------------------------------------------------------------------------------------------------
    def _write(self, blocks: Sequence[Outgoing], max_blocks: int, deadline: float) -> list[OSError | None]:
        if self._room_bytes is None:
            self._measure(0, deadline)
        wire, errors = self._line.wire, list[OSError | None]([None] * len(blocks))
        stamps = wire.call("ZMSCORE", self._space.index, *(block.key for block in blocks), deadline=deadline)
        assert isinstance(stamps, list)
        sent: list[int] = []
        for index, stamp in enumerate(stamps):
            if stamp is None and self._take_room():
                sent.append(index)
            elif stamp is None:
                errors[index] = NoRoomError("the server has no more memory for blocks")
        wire.send([self._set(blocks[index]) for index in sent], deadline)
        for index in sent:
            errors[index] = self._stored(deadline)
        self._add([block for block, error in zip(blocks, errors, strict=True) if not error], max_blocks, deadline)
        return errors

    def _set(self, block: Outgoing) -> tuple[bytes | str | int | tuple[bytes, memoryview], ...]:
        layout = self._space.layout
        payload = layout.codec.encode(block.slab)
        header = layout.header(block.key, block.parent_key, block.position, payload, block.tenant)
        return "SET", self._space.value(block.key), (header, payload), "EX", self._space.value_ttl

    def _stored(self, deadline: float) -> NoRoomError | None:
        try:
            self._line.wire.reply(deadline)
        except ServerError as error:
            if error.kind != "OOM":
                raise
            return NoRoomError("the server's memory is full")
        return None

    def _add(self, blocks: Sequence[Outgoing], max_blocks: int, deadline: float) -> None:
        """To the index: from now on others find them."""
        if not blocks:
            return
        places = [(block.key, pack_place(block.parent_key, block.position, block.tenant)) for block in blocks]
        match self._run(scripts.ADD, max_blocks, *chain.from_iterable(places), deadline=deadline):
            case [bytes(first), bytes(last), int(trimmed)]:
                self._index.stamped(int(first), int(last))
                self._num_trimmed += trimmed
                self._gained(trimmed)

    def _measure(self, num_blocks: int, deadline: float) -> Room:
        info = self._line.wire.call("INFO", "memory", deadline=deadline)
        room = Room.parse(info if isinstance(info, bytes) else b"", num_blocks * self._space.value_bytes)
        self._room_bytes = room.free_bytes
        return room

    def _take_room(self) -> bool:
        has_room = self._room_bytes is not None and self._room_bytes >= self._space.value_bytes
        self._gained(-has_room)
        return has_room

    def _gained(self, num_blocks: int) -> None:
        if self._room_bytes is not None:
            self._room_bytes += num_blocks * self._space.value_bytes

    def _ask(self, *arguments: bytes | str | int) -> Reply:
        return self._run(scripts.LOOK, *arguments, deadline=self._new_deadline())

    def _run(self, script: str, *arguments: bytes | str | int, deadline: float) -> Reply:
        return self._space.run(self._line.wire, script, *arguments, deadline=deadline)


def _batches(keys: Sequence[BlockKey]) -> Iterable[Sequence[BlockKey]]:
    return (keys[start : start + SCRIPT_KEYS] for start in range(0, len(keys), SCRIPT_KEYS))
