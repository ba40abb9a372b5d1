"""The folder with traces that are replayed: names in it, uploads into it. Nothing outside of it is ever opened.

A trace is a file, or a folder of files (logs that were rotated). Knows nothing about what is in one. All of it is for
its owner only.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path
from stat import S_ISREG

from django.conf import settings

from dashboard.sizes import format_size

MAX_FILE_BYTES = 1 << 30
MAX_FOLDER_BYTES = 8 << 30
MAX_NAME = 120
_LONGEST_WISH = MAX_NAME - 8  # a number may be put behind it
PART = ".part"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class TraceFileError(ValueError):
    """The file cannot be used; the message is a sentence for a person."""


@dataclass(frozen=True)
class TraceFile:
    """One that lies in the folder; a folder of files has their bytes together."""

    name: str
    num_bytes: int


def folder() -> Path:
    path = Path(settings.TIERSCOPE_HOME) / "traces"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def trace_files() -> list[TraceFile]:
    """Those with a name that may be asked for, sorted; without folders that this process may not look into."""
    found = []
    for path in sorted(_traces()):
        with suppress(PermissionError):
            found.append(TraceFile(path.name, sum(size for size, _ in _marks(path))))
    return found


def _traces() -> Iterator[Path]:
    for path in folder().iterdir():
        if _is_name(path.name) and _is_trace(path):
            yield path


def _is_trace(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or path.is_dir())


def _marks(path: Path) -> list[tuple[int, int]]:
    """Size and time of the file, or of each file in the folder, by name."""
    found = map(_looked_at, sorted(path.iterdir()) if path.is_dir() else [path])
    return [(each.st_size, each.st_mtime_ns) for each in found if each is not None]


def _looked_at(path: Path) -> os.stat_result | None:
    """Once: an engine that records there may remove its oldest file at any moment. None for what is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found if S_ISREG(found.st_mode) else None


def size_in_words(file: TraceFile) -> str:
    return format_size(file.num_bytes)


def trace_path(name: str) -> Path:
    """Raises TraceFileError for what is no name in the folder, or a link there."""
    path = folder() / name
    if not _is_name(name) or not _is_trace(path):
        raise TraceFileError(f"There is no trace “{name[:MAX_NAME]}” in the folder traces.")
    return path


def mark_of(path: Path) -> str:
    """What tells this trace from one that takes its place. A folder that an engine writes to may grow at its end."""
    mark = [min((child.name for child in path.iterdir()), default="")] if path.is_dir() else _marks(path)
    return blake2b(repr(mark).encode(), digest_size=16).hexdigest()


def take_in(path: Path) -> str:
    """The name in the folder of a trace from anywhere, which is copied there unless it is there already.

    For the command line: who types it may read the trace. Raises TraceFileError, or OSError.
    """
    if not path.is_file() and not path.is_dir():
        raise TraceFileError(f"{path} is no file and no folder.")
    if path.resolve().parent == folder().resolve():
        return trace_path(path.name).name
    wish = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name)[-_LONGEST_WISH:].lstrip(".-_") or "trace"
    target = next(place for number in count(1) if _is_free_for(place := folder() / _numbered(wish, number), path))
    if not target.exists():
        _copy(path, target)
    return target.name


def _numbered(name: str, number: int) -> str:
    stem, dot, suffix = name.partition(".")
    return name if number == 1 else f"{stem}-{number}{dot}{suffix}"


def _is_free_for(place: Path, path: Path) -> bool:
    is_same = place.exists() and not place.is_symlink() and place.is_dir() == path.is_dir()
    return not place.exists() or (is_same and _marks(place) == _marks(path))


def _copy(path: Path, target: Path) -> None:
    """With the files' times, so that it is known again."""
    if path.is_dir():
        target.mkdir(mode=0o700)
        for child in sorted(path.iterdir()):
            if child.is_file():
                _copy(child, target / child.name)
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with (
            os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as to,
            path.open("rb") as file,
        ):
            shutil.copyfileobj(file, to, 1 << 20)
        os.utime(temporary, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_new_name(name: str) -> None:
    """Raises TraceFileError."""
    if not _is_name(name):
        raise TraceFileError(
            f"“{name[:40]}” is no name for a trace; expected up to {MAX_NAME} letters, digits, dots, dashes and "
            "underscores, the first a letter or digit."
        )
    if (folder() / name).exists():
        raise TraceFileError(f"There is a trace “{name}” already; remove it first, or rename yours.")


def add_piece(name: str, offset: int, piece: bytes, *, is_last: bool) -> int:
    """Appends to an upload, which begins at offset 0; how many bytes are there. Raises TraceFileError."""
    check_new_name(name)
    part = folder() / f".{name}{PART}"
    there = part.stat().st_size if offset and part.exists() else 0
    if offset != there:
        raise TraceFileError(f"The upload of “{name}” went astray: begin it again.")
    if there + len(piece) > MAX_FILE_BYTES or _used_bytes() + len(piece) > MAX_FOLDER_BYTES:
        part.unlink(missing_ok=True)
        raise TraceFileError(
            f"A trace may have {MAX_FILE_BYTES >> 20:,} MiB, and all of them {MAX_FOLDER_BYTES >> 30} GiB: pack it "
            "with gzip, or remove another."
        )
    try:
        _append(part, piece, is_first=not offset)
        if is_last:
            part.rename(folder() / name)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise TraceFileError(f"“{name}” cannot be stored: {error.strerror or error}.") from None
    return there + len(piece)


def _append(part: Path, piece: bytes, *, is_first: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_first else os.O_APPEND)
    with os.fdopen(os.open(part, flags | os.O_NOFOLLOW, 0o600), "wb" if is_first else "ab") as file:
        file.write(piece)


def remove(name: str) -> None:
    """Raises TraceFileError where there is none, or where it stays."""
    path = trace_path(name)
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:  # another's file, or an engine that records there just then
        raise TraceFileError(f"“{name}” cannot be removed: {error.strerror or error}.") from None


def remove_old_parts(before: float) -> None:
    """Uploads that nobody went on with since."""
    for path in folder().glob(f".*{PART}"):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()


def _used_bytes() -> int:
    return sum(found.st_size for found in map(_looked_at, folder().rglob("*")) if found is not None)


def _is_name(name: str) -> bool:
    return len(name) <= MAX_NAME and bool(_NAME.fullmatch(name))
