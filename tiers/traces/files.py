"""A file, a folder or a pattern to numbered lines: plain, gzipped, or in a tar archive, read as streams.

An archive is never unpacked to disk: only its regular files are read, in their order; links, devices and names that
lead elsewhere have no effect. A gzipped file that is being appended to ends with its last whole member's lines, or
whole lines of the one after it. Knows nothing about what the lines mean.
"""

import io
import math
import tarfile
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

from tiers.traces.limits import Meter
from tiers.traces.request import TraceError

_GZIP_MAGIC = b"\x1f\x8b"
_OTHERS = {b"PK\x03\x04": "zip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_BUFFER_BYTES = 1 << 17
# Before a member's data: its header, a long name, attributes, maps of sparse files, which are read into memory at once.
_MAX_HEADER_BYTES = 1 << 20
_TORN = (EOFError, OSError, zlib.error)


class _UnfinishedError(EOFError):
    """The file ends within a gzip member that is not its first: somebody appends to it just now."""


class Line(NamedTuple):
    name: str
    number: int
    text: bytes

    @property
    def where(self) -> str:
        return f"{self.name}, line {self.number:,}"


def paths_of(path: Path) -> list[Path]:
    """Regular files by name: the one, a folder's visible ones, or what a pattern like `logs/*.jsonl` matches.

    Raises TraceError where there is none, and OSError where the path leads nowhere.
    """
    if path.is_dir():
        found = sorted(child for child in path.iterdir() if _is_visible(child.name) and not child.is_symlink())
    elif not path.exists() and any(letter in path.name for letter in "*?["):
        found = sorted(path.parent.glob(path.name))
    else:
        path.stat()
        found = [path]
    files = [each for each in found if each.is_file()]
    if not files:
        raise TraceError(f"{path} has no regular files; expected a trace, which is read more than once.")
    return files


def open_lines(path: Path, meter: Meter) -> Iterator[Iterator[Line]]:
    """The lines of a file, or of each file in an archive; each iterator is to be used up before the next is taken."""
    meter.file(str(path))
    with path.open("rb") as file:
        stream = _unpacked(str(path), _counted(file, meter.packed), meter)
        try:
            is_tar = _is_tar(stream)
        except _TORN as error:
            raise TraceError(f"{path}, line 1: the compressed file is torn ({error}).") from None
        if is_tar:
            yield from _members(path, stream, meter)
        else:
            yield _numbered(str(path), stream, meter)


def _members(path: Path, stream: io.BufferedReader, meter: Meter) -> Iterator[Iterator[Line]]:
    headers = _Headers(stream)
    try:
        # In stream mode a member can only be read where it lies.
        with tarfile.open(fileobj=cast(IO[bytes], headers), mode="r|") as archive:
            while (member := headers.next(archive)) is not None:
                name = f"{path}, {_shown(member.name)}"
                meter.file(name)
                part = archive.extractfile(member) if member.isreg() and not member.issparse() else None
                if part is not None and _is_visible(member.name.rpartition("/")[2]):
                    yield _numbered(name, _unpacked(name, _counted(cast(_Source, part), _nothing), meter), meter)
                while part is not None and part.read(_BUFFER_BYTES):
                    pass  # not left to the archive: between members there are headers only
    except (tarfile.TarError, *_TORN) as error:
        raise TraceError(f"{path}: the archive is torn ({error}).") from None


def is_archive(path: Path, meter: Meter) -> bool:
    with path.open("rb") as file:
        try:
            return _is_tar(_unpacked(str(path), _counted(file, _nothing), meter))
        except _TORN:
            return False


class _Headers:
    """What an archive is read through: between its files there is room for a header, and no more."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._room: float = _MAX_HEADER_BYTES

    def next(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        self._room = _MAX_HEADER_BYTES
        try:
            return archive.next()
        finally:
            self._room = math.inf

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._room -= len(data)
        if self._room < 0:
            raise tarfile.ReadError(f"a header of more than {_MAX_HEADER_BYTES:,} bytes")
        return data


def _numbered(name: str, stream: IO[bytes], meter: Meter) -> Iterator[Line]:
    max_bytes = meter.limits.max_line_bytes
    for number in count(1):
        try:
            text = stream.readline(max_bytes + 1)
        except _UnfinishedError:
            return
        except _TORN as error:
            raise TraceError(f"{name}, line {number:,}: the compressed file is torn ({error}).") from None
        if not text:
            return
        if len(text) > max_bytes:
            raise TraceError(f"{name}, line {number:,}: longer than {max_bytes:,} bytes.")
        if text.strip():
            yield Line(name, number, text)


def _unpacked(name: str, stream: io.BufferedReader, meter: Meter) -> io.BufferedReader:
    def count_bytes(num_bytes: int) -> None:
        meter.unpacked(name, num_bytes)

    start = stream.peek(8)
    for magic, packer in _OTHERS.items():
        if start.startswith(magic):
            raise TraceError(f"{name} is packed with {packer}; expected plain lines, gzip or tar.")
    is_gzip = start.startswith(_GZIP_MAGIC)
    return _counted(_Gunzip(stream) if is_gzip else stream, count_bytes)


class _Gunzip:
    """What the members of a gzipped file hold, one after the other, each checked at its end; zeros may lie between."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._num_whole = 0
        self._packed = b""
        self._is_begun = False
        self._begin(b"")

    def read1(self, size: int, /) -> bytes:
        """b"" at the end. Raises zlib.error for what is damaged, EOFError for what ends too early."""
        while True:
            if self._member.eof:
                self._num_whole += 1
                self._begin(self._member.unused_data)
            packed = self._packed or self._stream.read1(_BUFFER_BYTES)
            is_over = not packed
            if not self._is_begun:
                packed = packed.lstrip(b"\0")
            self._is_begun = self._is_begun or bool(packed)
            data = self._member.decompress(packed, size)
            self._packed = self._member.unconsumed_tail
            if data or (is_over and self._is_at_end()):
                return data

    def _begin(self, packed: bytes) -> None:
        self._member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._packed = packed
        self._is_begun = False

    def _is_at_end(self) -> bool:
        if self._is_begun and not self._member.eof:
            raise (_UnfinishedError if self._num_whole else EOFError)("it ends before its end")
        return not self._is_begun


class _Source(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Counting(io.RawIOBase):
    """Fills what it is given as far as the source goes, and tells how far that was."""

    def __init__(self, source: "_Source", tell: Callable[[int], None]) -> None:
        self._source = source
        self._tell = tell

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]  # BufferedReader gives no other
        """What comes before a tear is given out first."""
        num_read = 0
        try:
            while num_read < len(buffer) and (data := self._source.read1(len(buffer) - num_read)):
                buffer[num_read : num_read + len(data)] = data
                num_read += len(data)
        except _TORN:
            if not num_read:  # else the next call meets it again
                raise
        self._tell(num_read)
        return num_read


def _counted(source: "_Source", tell: Callable[[int], None]) -> io.BufferedReader:
    return io.BufferedReader(_Counting(source, tell), _BUFFER_BYTES)


def _nothing(num_bytes: int) -> None:
    pass


def _is_tar(stream: io.BufferedReader) -> bool:
    return stream.peek(512)[_TAR_MAGIC_AT : _TAR_MAGIC_AT + len(_TAR_MAGIC)] == _TAR_MAGIC


def _is_visible(name: str) -> bool:
    return not name.startswith(".")


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name[-80:])
