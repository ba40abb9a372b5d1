"""A block's file, written in one go. Knows nothing about what is in it, nor how files are read (`block_reads`)."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def write_file(path: str | Path, parts: Sequence[bytes | memoryview], *, over: bool = False) -> None:
    """A leftover of the same name is replaced, or written over where that changes nothing else; a disk that takes only
    a part raises ENOSPC.
    """
    over = over and _is_ours_alone(path)
    if not over:
        with suppress(FileNotFoundError):
            os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags if over else flags | os.O_EXCL, 0o600)
    try:
        views = [memoryview(part).cast("B") for part in parts]
        num_bytes = sum(map(len, views))
        while views:
            written = os.writev(descriptor, views)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            views = _after(views, written)
        if over:
            os.ftruncate(descriptor, num_bytes)
    finally:
        os.close(descriptor)


def _is_ours_alone(path: str | Path) -> bool:
    """A file with one name: a copy of the folder by hard links (`cp -al`) has the same files by others."""
    with suppress(OSError):
        found = os.lstat(path)
        return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    return False


def _after(views: list[memoryview], num_bytes: int) -> list[memoryview]:
    """What is left of the views after so many bytes."""
    rest: list[memoryview] = []
    for view in views:
        if num_bytes < len(view):
            rest.append(view[num_bytes:])
        num_bytes = max(0, num_bytes - len(view))
    return rest
