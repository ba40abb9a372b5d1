"""Blocks' files: written under another name and renamed, read in one go. Knows nothing about what is in them.

What lies in the page cache is copied from there. The rest is read past it, straight to where it belongs: a block that
comes up to gpu is not asked for again soon, and filling the cache with it costs more than half of the disk's speed.

Many files are read, and their checksums taken, in one compiled call: in Python each has six hand-overs of the
interpreter's lock, and four readers and the thread that keeps the books waited for it longer than the page cache takes
to copy.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tiers.addresses import address_of
from tiers.books.compiled import ADDRESS, INT, LONG, Ints64, Words, aside, part, system
from tiers.books.xxh3 import as_digests, xxh3_128

# Files a call; each has a page for its end.
MAX_FILES = 16
CACHESTAT = 451  # a call of Linux 6.5, the same on all processors since then
ALIGNMENT = mmap.PAGESIZE  # of memory that is filled past the cache
NOT_OPENED, NOT_READ = -1, -2

OPEN_FLAGS, SET_FLAGS, DIRECT = os.O_RDONLY | os.O_CLOEXEC, fcntl.F_SETFL, os.O_DIRECT
PAGE = mmap.PAGESIZE


_open = system("open", INT, ADDRESS, INT)
_close = system("close", INT, INT)
_fcntl = system("fcntl", INT, INT, INT, INT)
_preadv = system("preadv", LONG, INT, ADDRESS, INT, LONG)
_syscall = system("syscall", LONG, LONG, LONG, ADDRESS, ADDRESS, LONG)


def write_file(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """A leftover of the same name is replaced; a disk that takes only a part raises ENOSPC."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        views = [memoryview(part).cast("B") for part in parts]
        while views:
            written = os.writev(descriptor, views)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            views = _after(views, written)
    finally:
        os.close(descriptor)


def _after(views: list[memoryview], num_bytes: int) -> list[memoryview]:
    """What is left of the views after so many bytes."""
    rest: list[memoryview] = []
    for view in views:
        if num_bytes < len(view):
            rest.append(view[num_bytes:])
        num_bytes = max(0, num_bytes - len(view))
    return rest


def read_files(
    paths: Sequence[str], targets: Sequence[memoryview], ends: memoryview, num_bytes: int
) -> list[tuple[int, bytes]]:
    """Fill each target, all of one length, and its page of `ends` with the rest of a file that should have `num_bytes`.

    Returns how many bytes each had, or NOT_OPENED or NOT_READ, and its target's XXH3, if it had as many as it should. A
    page is more than the rest: so a file that is too long is noticed, and past the cache only whole sectors are read.
    """
    encoded = [os.fsencode(path) + b"\0" for path in paths]
    names = np.frombuffer(b"".join(encoded), np.uint8)
    starts = np.array([0, *accumulate(map(len, encoded[:-1]))], np.int64)
    addresses = np.array([address_of(target) for target in targets], np.int64)
    found = np.empty(len(paths), np.int64)
    sizes = np.array([len(targets[0]), num_bytes, ALIGNMENT, CACHESTAT], np.int64)
    digests = np.zeros((len(paths), 2), np.uint64)
    _read_all(names, starts, addresses, address_of(ends), sizes, found, digests)
    return list(zip(found.tolist(), as_digests(digests), strict=True))


@aside
def _read_all(
    names: Words, starts: Ints64, targets: Ints64, ends: int, sizes: Ints64, found: Ints64, digests: Words
) -> None:
    """`sizes` are a target's bytes, a file's bytes, the alignment and the number of the system call."""
    for number in range(len(starts)):
        descriptor = _open(names[starts[number] :].ctypes.data, np.int32(OPEN_FLAGS))
        if descriptor < 0:
            found[number] = NOT_OPENED
            continue
        target, end = targets[number], ends + number * PAGE
        num_read: Any = np.int64(NOT_READ)
        is_aligned = target % sizes[2] == 0 and sizes[0] % sizes[2] == 0
        if is_aligned and not _is_cached(descriptor, sizes[0], sizes[3]):
            _fcntl(descriptor, np.int32(SET_FLAGS), np.int32(DIRECT))
            num_read = _read(descriptor, target, sizes[0], end, 0)
            _fcntl(descriptor, np.int32(SET_FLAGS), np.int32(0))
        if num_read != sizes[1]:  # a file system that cannot do it
            num_read = _fill(descriptor, target, sizes[0], end, sizes[1])
        found[number] = num_read
        _close(descriptor)
        if num_read == sizes[1]:
            low, high = xxh3_128(target, sizes[0])
            digests[number, 0], digests[number, 1] = high, low


@part
def _is_cached(descriptor: int, num_bytes: int, call: int) -> Any:
    """Whether the page cache has all of it; True also where the system does not tell."""
    asked, told = np.zeros(2, np.uint64), np.zeros(5, np.uint64)
    asked[1] = num_bytes
    refused = _syscall(call, np.int64(descriptor), asked.ctypes.data, told.ctypes.data, 0)
    return refused != 0 or told[0] * PAGE >= num_bytes


@part
def _fill(descriptor: int, target: int, target_bytes: int, end: int, num_bytes: int) -> Any:
    total: Any = np.int64(0)
    while total < num_bytes:
        num_read = _read(descriptor, target, target_bytes, end, total)
        if num_read <= 0:
            return total if num_read == 0 else NOT_READ
        total += num_read
    return total


@part
def _read(descriptor: int, target: int, target_bytes: int, end: int, start: int) -> Any:
    """Into what is left of both after `start` bytes."""
    places = np.empty(4, np.uint64)  # address, length, address, length
    first, second = min(start, target_bytes), max(0, start - target_bytes)
    places[0], places[1] = target + first, target_bytes - first
    places[2], places[3] = end + second, PAGE - second
    return _preadv(descriptor, places.ctypes.data, np.int32(2), start)
