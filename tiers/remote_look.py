"""What has changed in a namespace since one looked last. Knows nothing about values or tiers' books.

The first look, and the first after anything went wrong or the namespace began anew, is a full one: all blocks there
are. The others tell what was stored or used by others, and what was removed by anybody.
"""

import secrets
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiers.books.tenants import MAX_NAME_BYTES, NOBODY
from tiers.keys import KEY_BYTES, BlockKey
from tiers.remote_room import Room
from tiers.remote_wire import Reply

PAGE_BLOCKS = 2000
_PLACE = struct.Struct(f"<{KEY_BYTES}sI{MAX_NAME_BYTES}s")
_FOUND = struct.Struct(f">{KEY_BYTES}s{_PLACE.size}sd")
_LEFT = struct.Struct(f">{KEY_BYTES}sd")


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """A block in the index: whose child it is, which of its prompt's blocks, and whose."""

    key: BlockKey
    parent_key: BlockKey
    position: int
    tenant: str = NOBODY


@dataclass(frozen=True)
class News:
    """`used` are blocks that others have stored or read, longest ago first; where it `is_full`, all there are.

    `num_blocks` are there now; `num_expired` this look has removed.
    """

    is_full: bool
    used: Sequence[RemoteEntry]
    gone: Sequence[BlockKey]
    num_blocks: int
    num_expired: int


@dataclass(frozen=True)
class Look:
    """`num_trimmed` blocks this side has removed since the last look, because there were too many."""

    news: News
    num_trimmed: int
    room: Room


def pack_place(parent_key: BlockKey, position: int, tenant: str) -> bytes:
    """What the index keeps with a key."""
    return _PLACE.pack(parent_key, position, tenant.encode())


class Index:
    """Remembers how far one has looked. `ask` runs the look script: (its own arguments) → its reply."""

    def __init__(self) -> None:
        self._name = b""
        self._found_at = self._left_at = 0.0
        self._own: list[tuple[float, float]] = []

    def forget(self) -> None:
        """The next look is a full one."""
        self._name = b""

    def stamped(self, first: int, last: int) -> None:
        """Stamps that this side has set itself: their blocks are no news."""
        self._own.append((first, last))

    def look(self, ask: Callable[..., Reply]) -> News:
        is_full = not self._name
        if is_full:
            self._found_at, self._left_at = -1.0, -1.0
        entries: list[RemoteEntry] = []
        gone: list[BlockKey] = []
        num_expired, has_more = 0, True
        while has_more:
            name, last, cut, expired, num_blocks, found, left, more = _checked(
                ask(secrets.token_hex(8), repr(self._found_at), repr(self._left_at), PAGE_BLOCKS)
            )
            if is_full and self._left_at < 0:
                self._name, self._left_at, left = name, float(last), b""  # what is gone already was never known
            elif name != self._name or self._left_at < float(cut):
                self.forget()
                return self.look(ask)
            num_expired += expired
            has_more = bool(more)
            entries += self._new_entries(found, is_full)
            gone += self._new_gone(left)
            if not has_more:
                self._found_at, self._left_at = max(self._found_at, float(last)), max(self._left_at, float(last))
        self._own.clear()
        return News(is_full, entries, gone, num_blocks, num_expired)

    def _new_entries(self, found: bytes, is_full: bool) -> list[RemoteEntry]:
        entries = []
        for key, place, stamp in _FOUND.iter_unpack(found):
            self._found_at = stamp
            if is_full or not any(first <= stamp <= last for first, last in self._own):
                parent_key, position, tenant = _PLACE.unpack(place)
                entries.append(RemoteEntry(key, parent_key, position, tenant.rstrip(b"\0").decode(errors="ignore")))
        return entries

    def _new_gone(self, left: bytes) -> list[BlockKey]:
        keys = []
        for key, stamp in _LEFT.iter_unpack(left):
            self._left_at = stamp
            keys.append(key)
        return keys


def _checked(reply: Reply) -> tuple[bytes, bytes, bytes, int, int, bytes, bytes, int]:
    match reply:
        case [
            bytes(name), bytes(last), bytes(cut), int(expired), int(num_blocks), bytes(found), bytes(left), int(more)
        ]:  # fmt: skip
            return name, last, cut, expired, num_blocks, found, left, more
        case _:
            raise ValueError("the server's index has another form than expected")
