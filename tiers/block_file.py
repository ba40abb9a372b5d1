"""One block's file: written under another name and renamed, read in one go. Knows nothing about what is in it.

What lies in the page cache is copied from there. The rest is read past it, straight to where it belongs: a block that
comes up to gpu is not asked for again soon, and filling the cache with it costs more than half of the disk's speed.
"""

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_SYS_CACHESTAT = 451  # Linux 6.5, the same on all processors since then
_libc = ctypes.PyDLL(None)  # keeps the interpreter: giving it up would cost readers more than the call takes


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("num_bytes", ctypes.c_uint64))


class _CacheStat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("num_cached", "num_dirty", "num_writeback", "num_evicted", "num_recent")
    )


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


def read_file(path: str, target: memoryview, end: memoryview, num_bytes: int) -> int:
    """Fill `target`, then `end` with the rest of a file that should have `num_bytes`; returns how many there were.

    `end` is a page, which is more than the rest: so a file that is too long is noticed, and past the cache only whole
    sectors are read. Raises FileNotFoundError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read(descriptor, target, end, num_bytes)
    finally:
        os.close(descriptor)


def _read(descriptor: int, target: memoryview, end: memoryview, num_bytes: int) -> int:
    if _is_aligned(target) and not _is_cached(descriptor, len(target)):
        with suppress(OSError):  # a file system that cannot do it
            fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_DIRECT)
            if os.preadv(descriptor, [target, end], 0) == num_bytes:
                return num_bytes
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    return _read_into(descriptor, [target, end], num_bytes)


def _is_aligned(target: memoryview) -> bool:
    address = ctypes.addressof(ctypes.c_char.from_buffer(target))
    return not address % mmap.PAGESIZE and not len(target) % mmap.PAGESIZE


def _is_cached(descriptor: int, num_bytes: int) -> bool:
    """Whether the page cache has all of it; True also where the system does not tell."""
    found = _CacheStat()
    refused = _libc.syscall(_SYS_CACHESTAT, descriptor, ctypes.byref(_Range(0, num_bytes)), ctypes.byref(found), 0)
    return bool(refused) or found.num_cached * mmap.PAGESIZE >= num_bytes


def _read_into(descriptor: int, views: list[memoryview], num_bytes: int) -> int:
    total = 0
    while total < num_bytes:
        num_read = os.preadv(descriptor, views, total)
        if num_read == 0:
            break
        total += num_read
        views = _after(views, num_read)
    return total


def _after(views: list[memoryview], num_bytes: int) -> list[memoryview]:
    """What is left of the views after so many bytes."""
    rest: list[memoryview] = []
    for view in views:
        if num_bytes < len(view):
            rest.append(view[num_bytes:])
        num_bytes = max(0, num_bytes - len(view))
    return rest
