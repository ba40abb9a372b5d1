"""A TCP proxy before a real server that misbehaves on demand. Knows nothing about what is said through it."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

Mode = Literal["pass", "hang", "slow", "close_mid_way", "reset", "nonsense"]


class Proxy:
    """Behaves as `mode` says, also on connections that are open already; `refuse` and `listen` close and open the port.

    hang: takes all, answers nothing. slow: so many bytes a second towards the client. close_mid_way: each answer's
    first bytes, then the end. reset: the end at once. nonsense: bytes that are no answer.
    """

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self.mode: Mode = "pass"
        self.bytes_per_second = 50_000
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.listen()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def listen(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def refuse(self) -> None:
        """No new connections; those that are open end."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        with self._lock:
            ending, self._open = self._open, []
        for each in ending:
            _end(each)

    def close(self) -> None:
        self.refuse()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self.mode == "reset":
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open += [client, server]
            threading.Thread(target=self._upwards, args=(client, server), daemon=True).start()
            threading.Thread(target=self._downwards, args=(server, client), daemon=True).start()

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 16):
                server.sendall(data)
        except OSError:
            pass
        _end(server)

    def _downwards(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                self._answer(client, data)
        except OSError:
            pass
        _end(client)

    def _answer(self, client: socket.socket, data: bytes) -> None:
        if self.mode == "hang":
            return
        if self.mode == "slow":
            step = max(1, self.bytes_per_second // 50)
            for start in range(0, len(data), step):
                client.sendall(data[start : start + step])
                time.sleep(step / self.bytes_per_second)
        elif self.mode == "close_mid_way":
            client.sendall(data[: len(data) // 2])
            client.shutdown(socket.SHUT_WR)
        elif self.mode == "reset":
            raise OSError
        elif self.mode == "nonsense":
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        else:
            client.sendall(data)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
