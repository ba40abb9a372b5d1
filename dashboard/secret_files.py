"""Secrets that the first start makes for itself: one file each, mode 0600. Knows nothing about what they open."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import token_hex

# Files and folders that are made with this umask are for their owner only, wherever they lie.
PRIVATE_UMASK = 0o077


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """The secret in `path`; where there is none, `make()`'s result is stored there first.

    Two processes may start at once: the one that creates the file wins, the other reads what it wrote.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")  # threads start at once, too
    if not path.exists():
        write_private(temporary, make())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    """Writes `text` so that nobody but the owner could ever read it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text + "\n")


def close_to_others(paths: Iterable[Path]) -> None:
    """Takes everybody else's rights away, except where the file is another user's."""
    for path in paths:
        found = path.stat()
        if found.st_mode & PRIVATE_UMASK and found.st_uid == os.geteuid():
            path.chmod(found.st_mode & ~PRIVATE_UMASK)
