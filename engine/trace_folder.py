"""A folder of gzipped files of bounded size altogether: what is appended makes the oldest go. Knows nothing of lines.

Each append is a gzip member of its own, written at once: whatever is killed, what is there can be read. One writer.
"""

import gzip
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

SUFFIX = ".jsonl.gz"
# So the oldest eighth goes at a time.
FILES = 8
_OWN = re.compile(r"\d{8}T\d{6}Z-\d{6,}" + re.escape(SUFFIX), re.ASCII)


class TraceFolder:
    """Files for their owner only, named by when they were begun. Takes up what earlier processes left."""

    def __init__(self, path: Path, max_bytes: int, wall_clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._wall_clock = wall_clock

    def append(self, data: bytes) -> None:
        """Raises OSError where the disk or the folder does not take it; then nothing was written."""
        member = gzip.compress(data, 6)
        if len(member) > self._max_bytes:
            raise OSError(f"{len(member):,} bytes are more than the {self._max_bytes:,} that all files may have")
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = self._files()
        current = files[-1] if files and self._has_room(files[-1], len(member)) else self._new_file(files)
        self._make_room([file for file in files if file != current], current, len(member))
        _append(current, member)

    def _files(self) -> list[Path]:
        """Ours by their names: what somebody else put here is not counted, and never removed."""
        return sorted(file for file in self._path.iterdir() if _OWN.fullmatch(file.name) and not file.is_symlink())

    def _has_room(self, file: Path, num_bytes: int) -> bool:
        return file.stat().st_size + num_bytes <= self._max_bytes // FILES

    def _new_file(self, files: list[Path]) -> Path:
        """Behind all that are there, also where the clock was set back."""
        begun = datetime.fromtimestamp(self._wall_clock(), UTC).strftime("%Y%m%dT%H%M%SZ")
        last, _, number = files[-1].name.removesuffix(SUFFIX).rpartition("-") if files else ("", "", "0")
        return self._path / f"{max(begun, last)}-{int(number) + 1:06d}{SUFFIX}"

    def _make_room(self, older: list[Path], current: Path, num_bytes: int) -> None:
        sizes = {file: file.stat().st_size for file in older}
        total = sum(sizes.values()) + num_bytes + (current.stat().st_size if current.exists() else 0)
        for file, size in sizes.items():
            if total <= self._max_bytes:
                return
            file.unlink(missing_ok=True)
            total -= size

    def check(self) -> None:
        total = sum(file.stat().st_size for file in self._files())
        assert total <= self._max_bytes, f"{total:,} bytes of recorded traffic are more than {self._max_bytes:,}"


def _append(file: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(file, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
