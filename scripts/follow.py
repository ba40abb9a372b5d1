"""Copies the growing log files to the console, each line under its process's name. Knows nothing of their content."""

import threading
from pathlib import Path
from typing import BinaryIO

from scripts.console import say

_EVERY_SECONDS = 0.2


class LogFile:
    """One log that another process writes and rotates."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._partial = b""
        # What an earlier start wrote is history.
        self._start_at = path.stat().st_size if path.exists() else 0

    def new_lines(self) -> list[str]:
        """Every line that was completed since the last call, also over a rotation."""
        data = self._read()
        if self._is_rotated():
            self.close()
            self._start_at = 0
            data += self._read()
        *lines, self._partial = (self._partial + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def close(self) -> None:
        if self._file:
            self._file.close()
        self._file = None

    def _read(self) -> bytes:
        if self._file is None and self.path.exists():
            self._file = self.path.open("rb")
            self._file.seek(self._start_at)
        return self._file.read() if self._file else b""

    def _is_rotated(self) -> bool:
        if self._file is None:
            return False
        try:
            return not self.path.samefile(f"/proc/self/fd/{self._file.fileno()}")
        except FileNotFoundError:
            return False


class Follower:
    """A thread that prints every log's new lines until it is told to finish."""

    def __init__(self, logs: dict[str, Path]) -> None:
        self._logs = {name: LogFile(path) for name, path in logs.items()}
        self._width = max(len(name) for name in logs)
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow-logs", daemon=True)

    def __enter__(self) -> "Follower":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._finish.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._finish.wait(_EVERY_SECONDS):
            self._print_all()
        self._print_all()
        for log in self._logs.values():
            log.close()

    def _print_all(self) -> None:
        for name, log in self._logs.items():
            for line in log.new_lines():
                say(f"{name:<{self._width}} | {line}")
