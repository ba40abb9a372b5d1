"""Blocks as files in one folder: written whole or not at all, verified when read. Knows nothing about recency.

A file is the slab and then its header, so that the slab lies on whole pages of the disk. Files are 0600, folders 0700.
Each layout (model, dtype, shape, block size, compression) has a folder of its own, so that models that share a path
never see, or remove, each other's blocks.
"""

import fcntl
import logging
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from tiers.block_file import write_file
from tiers.block_format import Header, Layout, layout_digest, stored_bytes, unpack
from tiers.block_reads import BlockFiles, BlockReads
from tiers.books.header import HEADER_BYTES
from tiers.books.tenants import NOBODY
from tiers.config import SlabSpec
from tiers.errors import CorruptError, RefusedError
from tiers.keys import BlockKey
from tiers.names import Compression

log = logging.getLogger(__name__)

SUFFIX = ".kv"
TEMPORARY = ".tmp"


class DiskStore:
    """`file_bytes` is what each block takes. Methods but `scan` are called by transfer threads."""

    def __init__(
        self,
        path: Path,
        slab: SlabSpec,
        block_size: int,
        fingerprint: str,
        compression: Compression = Compression.NONE,
    ) -> None:
        self._layout = Layout.of(slab, block_size, fingerprint, compression)
        self.file_bytes = stored_bytes(slab, compression)
        self.folder = path / self._layout.digest.hex()
        self._outdated = [
            path / layout_digest(slab, block_size, fingerprint, other).hex()
            for other in Compression
            if other is not compression
        ]
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._root = str(self.folder)
        self._block_files = BlockFiles(self._layout, self.file_bytes, self._name_of, SUFFIX)
        self._lock: IO[bytes] | None = None
        self._spares: list[str] = []

    def lock(self) -> None:
        """Two engines in one folder would overrun its budget and remove each other's files: RefusedError then.

        What the model's blocks were written as before the compression was changed is removed: no budget counts it.
        """
        self._lock = _locked(self.folder)
        for folder in self._outdated:
            if folder.is_dir():
                with suppress(RefusedError), _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)

    def unlock(self) -> None:
        while self._spares:
            self.drop_spare()
        if self._lock is not None:
            self._lock.close()

    def path_of(self, key: BlockKey) -> Path:
        return Path(self._name_of(key))

    def _name_of(self, key: BlockKey) -> str:
        name = key.hex()
        return f"{self._root}/{name[:2]}/{name}{SUFFIX}"

    def write(self, key: BlockKey, parent_key: BlockKey, position: int, slab: memoryview, tenant: str = NOBODY) -> None:
        """Raises OSError, and leaves no file, if the block could not be written whole.

        Nor is the file left that it would have been written over: `spares` counts each write as one less.
        """
        path, is_spare = self._name_of(key), bool(self._spares)
        temporary = self._spares.pop() if is_spare else _temporary(path)
        try:
            payload = self._layout.codec.encode(slab)
            header = self._layout.header(key, parent_key, position, payload, tenant)
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), 0o700)
            write_file(temporary, [payload, header], over=is_spare)
            os.replace(temporary, path)
        except Exception:
            for leftover in (temporary, path):
                with suppress(OSError):
                    os.unlink(leftover)
            raise

    def read(self, key: BlockKey, target: memoryview) -> None:
        """Raises CorruptError if the file is not exactly the block that was stored, and OSError."""
        reads = self.reads([key])
        for _ in reads.each(lambda index: target):
            """It is the only one."""
        if errors := reads.errors:
            raise errors[0]

    def reads(self, keys: Sequence[BlockKey]) -> BlockReads:
        """For as many threads as there are."""
        return BlockReads(self._block_files, keys)

    def remove(self, key: BlockKey) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._name_of(key))

    def set_aside(self, key: BlockKey) -> None:
        """As `remove`, but a block that is written later is written over it."""
        path = self._name_of(key)
        with suppress(FileNotFoundError):
            os.rename(path, spare := _temporary(path))
            self._spares.append(spare)

    def drop_spare(self) -> None:
        """A file that was set aside, if there is one, is not needed."""
        if self._spares:
            with suppress(FileNotFoundError):
                os.unlink(self._spares.pop())

    def scan(self) -> list[Header]:
        """Headers of what was stored before, oldest first. Files that cannot be blocks of this layout are removed."""
        found: list[tuple[int, Header]] = []
        removed: list[str] = []
        for path in self._files():
            try:
                found.append((path.stat().st_mtime_ns, self._header(path)))
            except (CorruptError, OSError) as error:
                removed.append(f"{path.name}: {error}")
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        if removed:
            log.warning("%s: %d files are removed, first %s", self.folder, len(removed), removed[0])
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
        if not stat.S_ISREG(path.lstat().st_mode) or path.suffix != SUFFIX:  # to open a pipe is to wait for ever
            raise CorruptError("it is not a block's file")
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - HEADER_BYTES))
            header = unpack(file.read(HEADER_BYTES))
        if header.layout != self._layout.digest or self.path_of(header.key) != path:
            raise CorruptError("it holds another block")
        if path.stat().st_size != self.file_bytes:
            raise CorruptError("it was not written whole")
        return header


def _temporary(path: str) -> str:
    return path.removesuffix(SUFFIX) + TEMPORARY


def _locked(folder: Path) -> IO[bytes]:
    """Until it is closed. Raises RefusedError if another engine has it."""
    lock = os.fdopen(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise RefusedError(
            f"The disk tier's folder {folder} is in use by another engine; give each one a folder of its own."
        ) from error
    return lock
