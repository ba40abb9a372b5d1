"""TIERSCOPE_HOME/run: the files that say what runs with a home. Knows nothing about who writes them."""

from dataclasses import dataclass
from pathlib import Path

LAUNCHER_PID = "lock"
SUPERVISORD_PID = "supervisord.pid"


@dataclass(frozen=True)
class RunFolder:
    """`path` is made by the launcher."""

    path: Path

    @classmethod
    def of(cls, home: Path) -> "RunFolder":
        return cls(home / "run")

    @property
    def lock(self) -> Path:
        """Locked by the launcher for as long as it runs; holds its process id."""
        return self.path / LAUNCHER_PID

    @property
    def alive(self) -> Path:
        """Empty; locked, shared, by every program that the launcher or supervisord started."""
        return self.path / "alive"

    @property
    def config(self) -> Path:
        return self.path / "supervisord.conf"

    @property
    def supervisord_pid(self) -> Path:
        return self.path / SUPERVISORD_PID
