"""Blocks as files in one folder: written whole or not at all, verified when read. Knows nothing about recency.

Files are 0600, folders 0700. Each layout (model, dtype, shape, block size) has a folder of its own, so that models
that share a path never see, or remove, each other's blocks.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from tiers.block_format import HEADER_BYTES, Header, Layout, payload_checksum, stored_bytes, unpack
from tiers.config import SlabSpec
from tiers.errors import CorruptError, GoneError, RefusedError
from tiers.keys import BlockKey

log = logging.getLogger(__name__)

SUFFIX = ".kv"
TEMPORARY = ".tmp"


class DiskStore:
    """`file_bytes` is what each block takes. Methods but `scan` are called by transfer threads."""

    def __init__(self, path: Path, slab: SlabSpec, block_size: int, fingerprint: str) -> None:
        self._layout = Layout.of(slab, block_size, fingerprint)
        self.file_bytes = stored_bytes(slab)
        self.folder = path / self._layout.digest.hex()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._lock: IO[bytes] | None = None

    def lock(self) -> None:
        """Two engines in one folder would overrun its budget and remove each other's files: RefusedError then."""
        lock = os.fdopen(os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise RefusedError(
                f"The disk tier's folder {self.folder} is in use by another engine; give each one a folder of its own."
            ) from error
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def path_of(self, key: BlockKey) -> Path:
        name = key.hex()
        return self.folder / name[:2] / (name + SUFFIX)

    def write(self, key: BlockKey, parent_key: BlockKey, position: int, payload: memoryview) -> None:
        """Raises OSError, and leaves no file, if the block could not be written whole."""
        header = self._layout.header(key, parent_key, position, payload)
        path = self.path_of(key)
        temporary = path.with_suffix(TEMPORARY)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _write_file(temporary, [header, payload])
            temporary.replace(path)
        except OSError:
            for leftover in (temporary, path):
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)
            raise

    def read(self, key: BlockKey, target: memoryview) -> None:
        """One read into `target`. Raises CorruptError if the file is not exactly the block that was stored."""
        header_bytes = bytearray(HEADER_BYTES)
        try:
            descriptor = os.open(self.path_of(key), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise GoneError("the file is gone") from error
        try:
            size = os.fstat(descriptor).st_size
            num_read = _read_into(descriptor, [memoryview(header_bytes), target]) if size == self.file_bytes else 0
        finally:
            os.close(descriptor)
        if num_read != self.file_bytes:
            raise CorruptError(f"the file has {size:,} bytes; expected {self.file_bytes:,}")
        self._layout.verify(bytes(header_bytes), key, payload_checksum(target))

    def remove(self, key: BlockKey) -> None:
        self.path_of(key).unlink(missing_ok=True)

    def scan(self) -> list[Header]:
        """Headers of what was stored before, oldest first. Files that cannot be blocks of this layout are removed."""
        found: list[tuple[int, Header]] = []
        for path in self._files():
            try:
                found.append((path.stat().st_mtime_ns, self._header(path)))
            except (CorruptError, OSError) as error:
                log.warning("%s is removed: %s", path, error)
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        return [header for _, header in sorted(found, key=lambda pair: pair[0])]

    def set_order(self, oldest_first: Sequence[BlockKey], now_ns: int) -> None:
        """Keep the order of use over a restart, as the files' times."""
        for age, key in enumerate(reversed(oldest_first)):
            with suppress(OSError):
                os.utime(self.path_of(key), ns=(now_ns - age * 1000, now_ns - age * 1000))

    def _files(self) -> Iterator[Path]:
        for folder in sorted(self.folder.iterdir()):
            if folder.is_dir() and not folder.is_symlink():
                yield from (path for path in sorted(folder.iterdir()) if not path.is_dir())

    def _header(self, path: Path) -> Header:
        if path.is_symlink() or path.suffix != SUFFIX:
            raise CorruptError("it is not a block's file")
        with path.open("rb") as file:
            header = unpack(file.read(HEADER_BYTES))
        if header.layout != self._layout.digest or self.path_of(header.key) != path:
            raise CorruptError("it holds another block")
        if path.stat().st_size != self.file_bytes:
            raise CorruptError("it was not written whole")
        return header


def _write_file(path: Path, parts: Sequence[bytes | memoryview]) -> None:
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


def _read_into(descriptor: int, views: list[memoryview]) -> int:
    total = offset = 0
    while views:
        offset = os.preadv(descriptor, views, total)
        if offset == 0:
            break
        total += offset
        views = _after(views, offset)
    return total


def _after(views: list[memoryview], num_bytes: int) -> list[memoryview]:
    """What is left of the views after so many bytes."""
    rest: list[memoryview] = []
    for view in views:
        if num_bytes < len(view):
            rest.append(view[num_bytes:])
        num_bytes = max(0, num_bytes - len(view))
    return rest
