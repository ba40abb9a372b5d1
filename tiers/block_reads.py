"""Blocks' files that several threads read at once, each the next that no other has taken. Knows nothing about folders.

What lies in the page cache is copied from there. The rest is read past it, straight to where it belongs: a block that
comes up to gpu is not asked for again soon, and filling the cache with it costs more than half of the disk's speed.

A thread takes, reads and checks files in one compiled call. In Python each file had six hand-overs of the interpreter's
lock, and the threads waited for it longer than the page cache takes to copy; with portions of their own instead of
turns, all waited for the one that the system ran last.
"""

import errno
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from tiers.addresses import address_of
from tiers.block_format import Layout, as_bytes
from tiers.books.compiled import Ints64
from tiers.books.counter import next_of
from tiers.books.header import FINDINGS, WHOLE
from tiers.errors import CorruptError, GoneError
from tiers.keys import KEY_BYTES, BlockKey
from tiers.pool import MemoryPool
from tiers.read_turns import OTHER_LENGTH, UNREAD, read_turns

CACHESTAT = 451  # a call of Linux 6.5, the same on all processors since then
ALIGNMENT = mmap.PAGESIZE  # of memory that is filled past the cache


class BlockFiles:
    """All of one folder: what their reads have in common. `path_of` names one: its key's digits are last but for
    `suffix`, and begin as the name of the folder that it is in does.
    """

    def __init__(self, layout: Layout, file_bytes: int, path_of: Callable[[BlockKey], str], suffix: str) -> None:
        self.codec = layout.codec
        self.expected = layout.expected
        self.file_bytes = file_bytes
        self.path = as_bytes(os.fsencode(path_of(bytes(KEY_BYTES))) + b"\0")
        name_at = len(self.path) - 1 - len(os.fsencode(suffix)) - 2 * KEY_BYTES
        self.sizes = np.array([layout.num_bytes, file_bytes, ALIGNMENT, CACHESTAT, name_at - 3, name_at], np.int64)


class BlockReads:
    """The files of `keys`. `errors` are complete when all calls have ended; what is in such a block's target is
    undefined.
    """

    def __init__(self, files: BlockFiles, keys: Sequence[BlockKey]) -> None:
        self._files = files
        self._keys = as_bytes(b"".join(keys)).reshape(-1, KEY_BYTES)
        self._turn = np.zeros(1, np.int64)
        self._found = np.full(len(keys), UNREAD, np.int64)

    def into(self, pool: MemoryPool, slots: Sequence[int]) -> Callable[[], None]:
        """What each thread calls: it reads every file that no other has taken, each into its slot."""
        if self._files.codec.is_plain:
            return self._turns(slice(None), pool.addresses(slots), self._turn)

        def read() -> None:
            for _ in self.each(lambda index: pool.read(slots[index])):
                """It is where it belongs."""

        return read

    def each(self, target_of: Callable[[int], memoryview]) -> Iterator[int]:
        """The same, one after the other into what `target_of` gives for its index; those that are whole."""
        codec = self._files.codec
        while (index := next_of(self._turn)) < len(self._found):
            target = target_of(index)
            payload = codec.landing(target)
            self._read_one(index, payload)
            if self._found[index] == WHOLE:
                codec.decode(payload, target)
                yield index

    @property
    def errors(self) -> dict[int, Exception]:
        """By index: OSError, GoneError, or CorruptError for what is not exactly the block that was stored."""
        return {index: self._error(int(self._found[index])) for index in np.flatnonzero(self._found != WHOLE).tolist()}

    def _error(self, found: int) -> Exception:
        if found == -errno.ENOENT:
            return GoneError("the file is gone")
        if found < 0:
            return OSError(-found, f"the file could not be read: {os.strerror(-found)}")
        if found == UNREAD:
            return OSError("nothing has read the file")
        if found == OTHER_LENGTH:
            return CorruptError(f"the file has not the {self._files.file_bytes:,} bytes that a block takes")
        return CorruptError(FINDINGS[found])

    def _read_one(self, index: int, payload: memoryview) -> None:
        targets = np.array([address_of(payload)], np.int64)
        self._turns(slice(index, index + 1), targets, np.zeros(1, np.int64))()

    def _turns(self, part: slice, targets: Ints64, turn: Ints64) -> Callable[[], None]:
        files = self._files
        found = self._found[part]
        return partial(read_turns, files.path, self._keys[part], targets, files.expected, files.sizes, turn, found)
