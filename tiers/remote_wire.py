"""One connection to a Valkey or Redis server: commands out, replies in, each exchange by a deadline. No blocks here.

redis-py connects (URL, TLS, password, database); replies are read here, so that a value of a megabyte goes from the
socket to where it belongs and is not copied three times: six times as fast as the client's own way.
"""

import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from redis import RedisError
from redis.backoff import NoBackoff
from redis.connection import Connection, parse_url
from redis.retry import Retry

from tiers.books.xxh3 import new_state
from tiers.remote_values import CLOSED, LATE, TOO_LONG, Value, take

Reply = bytes | int | None | list["Reply"]
Part = bytes | memoryview
Argument = Part | str | int | Sequence[Part]

_RECEIVE_BYTES = 256 << 10
_LARGE_BYTES = 16 << 10
# A reply beyond these is not one that we asked for: a server that speaks something else.
_MAX_BULK = 4 << 20
_MAX_ITEMS = 1 << 20

_TOO_LATE = "the server did not answer in time"
_CLOSED = "the server closed the connection"
_TOO_LONG = "the server's value is longer than it said"


class ProtocolError(OSError):
    """What came back is not an answer to what was asked; the connection is of no use any more."""


class ServerError(OSError):
    """The server understood and refused; the connection goes on. `kind` is the first word: OOM, READONLY, …"""

    @property
    def kind(self) -> str:
        return str(self).split(" ", 1)[0]


class Wire:
    """Opened by the first exchange. Any OSError but ServerError leaves it unusable until `close`.

    Deadlines are times of `clock`. Used by one thread at a time, but for `close`.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._options: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]  # redis-py types it not
        self._new_connection(1.0)  # an option that does not exist is found now
        self._clock = clock
        self._socket: socket.socket | None = None
        self._data = bytearray(_RECEIVE_BYTES)
        self._buffer = memoryview(self._data)
        self._start = self._end = 0
        self._patience = 0.0
        self._is_plain = False
        self._state = new_state()
        self.num_opened = 0

    @property
    def is_local(self) -> bool:
        host = str(self._options.get("host", "localhost"))
        return "path" in self._options or host in ("localhost", "::1") or host.startswith("127.")

    def open(self, deadline: float) -> None:
        """Connect and log in, unless that was done. Raises OSError with a sentence that has no password in it."""
        if self._socket is not None and not _has_news(self._socket):
            return
        self.close()
        connection = self._new_connection(self._remaining(deadline))
        try:
            connection.connect()
        except RedisError as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        self._socket = connection._sock
        self._is_plain = not isinstance(self._socket, ssl.SSLSocket)
        connection._sock = None  # ours from now on: its parser would read ahead
        self._start = self._end = 0
        self._patience = 0.0
        self.num_opened += 1

    def _new_connection(self, seconds: float) -> Any:
        options = self._options | {
            "protocol": 2,
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
            "health_check_interval": 0,
            "driver_info": None,
            "retry": Retry(NoBackoff(), 0),
        }
        try:
            return options.pop("connection_class", Connection)(**options)
        except TypeError as error:
            raise ValueError(f"The server's URL has an option that redis-py does not know: {error}.") from error

    def close(self) -> None:
        """From any thread: an exchange that is under way fails at once."""
        connected, self._socket = self._socket, None
        if connected is not None:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
            connected.close()

    # -- asking ------------------------------------------------------------------------------------------------------
    def call(self, *arguments: Argument, deadline: float) -> Reply:
        """One command and its reply. Raises ServerError if the server refused."""
        self.send([arguments], deadline)
        return self.reply(deadline)

    def send(self, commands: Sequence[Sequence[Argument]], deadline: float) -> None:
        """The caller then takes one reply for each. An argument may come in parts; large ones are not copied."""
        small = bytearray()
        for command in commands:
            small += b"*%d\r\n" % len(command)
            for parts in map(_parts, command):
                small += b"$%d\r\n" % sum(map(len, parts))
                for part in parts:
                    if len(part) > _LARGE_BYTES:
                        self._connected(deadline).sendall(small)
                        self._connected(deadline).sendall(part)
                        small.clear()
                    else:
                        small += part
                small += b"\r\n"
        self._connected(deadline).sendall(small)

    # -- answers -----------------------------------------------------------------------------------------------------
    def reply(self, deadline: float) -> Reply:
        """The next reply, whatever it is. Raises ServerError if it is a refusal."""
        kind, rest = self._line(deadline)
        if kind == b"+":
            return rest
        if kind == b":":
            return self._number(rest)
        if kind == b"$":
            return self._bulk(self._number(rest, _MAX_BULK), deadline)
        if kind == b"*":
            return self._array(self._number(rest, _MAX_ITEMS), deadline)
        if kind == b"-":
            raise ServerError(rest.decode(errors="replace"))
        raise ProtocolError("the server's answer is no Redis reply")

    def value_length(self, deadline: float) -> int | None:
        """Of the value that is the next reply, to be taken by `receive` and `end_value`; None if there is no value."""
        kind, rest = self._line(deadline)
        if kind == b"-":
            raise ServerError(rest.decode(errors="replace"))
        if kind != b"$":
            raise ProtocolError("the server's answer is no value")
        length = self._number(rest)
        return None if length < 0 else length

    def receive(self, target: memoryview, deadline: float, seen: Callable[[memoryview], object] = id) -> None:
        """So many bytes of the value. `seen` is given them as they come, piece by piece."""
        at = min(self._end - self._start, len(target))
        if at:
            target[:at] = self._buffer[self._start : self._start + at]
            self._start += at
            seen(target[:at])
        while at < len(target):
            rest = target[at:]
            num_bytes = self._receive(rest, deadline)
            seen(rest[:num_bytes])
            at += num_bytes

    def receive_values(
        self, length: int, header_bytes: int, targets: Sequence[memoryview], deadline: float, taken: list[Value]
    ) -> None:
        """Adds to `taken` what comes next, values of such a length, one for each target, as far as they are that.

        What is none, and all that comes encrypted, is left for `value_length`.
        """
        if not self._is_plain:
            return
        held = np.array([self._start, self._end], np.int64)
        connection, seconds = self._connected(deadline), self._remaining(deadline)
        head = b"$%d\r\n" % length
        new, ended = take(connection, self._buffer, held, head, targets, header_bytes, seconds, self._state)
        self._start, self._end = held.tolist()
        taken += new
        if ended == LATE:
            raise TimeoutError(_TOO_LATE)
        if ended == CLOSED:
            raise ConnectionError(_CLOSED)
        if ended == TOO_LONG:
            raise ProtocolError(_TOO_LONG)

    def skip(self, num_bytes: int, deadline: float) -> None:
        scratch = memoryview(bytearray(min(num_bytes, 1 << 20)))
        while num_bytes:
            part = scratch[:num_bytes]
            self.receive(part, deadline)
            num_bytes -= len(part)

    def end_value(self, deadline: float) -> None:
        if self._take(2, deadline) != b"\r\n":
            raise ProtocolError(_TOO_LONG)

    # -- bytes -------------------------------------------------------------------------------------------------------
    def _bulk(self, length: int, deadline: float) -> bytes | None:
        if length < 0:
            return None
        data = bytearray(length)
        self.receive(memoryview(data), deadline)
        self.end_value(deadline)
        return bytes(data)

    def _array(self, length: int, deadline: float) -> list[Reply] | None:
        return None if length < 0 else [self.reply(deadline) for _ in range(length)]

    def _line(self, deadline: float) -> tuple[bytes, bytes]:
        """(first byte, the rest)"""
        while (end := self._data.find(b"\r\n", self._start, self._end)) < 0:
            self._fill(deadline)
        line = bytes(self._buffer[self._start : end])
        self._start = end + 2
        return line[:1], line[1:]

    def _fill(self, deadline: float) -> None:
        """More behind what is there."""
        held = self._end - self._start
        self._buffer[:held] = self._buffer[self._start : self._end]
        self._start, self._end = 0, held
        if held == len(self._buffer):
            raise ProtocolError("the server's answer has no end of line")
        self._end += self._receive(self._buffer[held:], deadline)

    def _number(self, digits: bytes, largest: int = 1 << 62) -> int:
        try:
            number = int(digits)
        except ValueError:
            raise ProtocolError("the server's answer has no number where one must be") from None
        if not -1 <= number <= largest and largest != 1 << 62:
            raise ProtocolError("the server's answer is longer than any that was asked for")
        return number

    def _take(self, num_bytes: int, deadline: float) -> bytes:
        taken = bytearray(num_bytes)
        self.receive(memoryview(taken), deadline)
        return bytes(taken)

    def _receive(self, target: memoryview, deadline: float) -> int:
        num_bytes = self._connected(deadline).recv_into(target)
        if not num_bytes:
            raise ConnectionError(_CLOSED)
        return num_bytes

    def _connected(self, deadline: float) -> socket.socket:
        connected = self._socket
        if connected is None:
            raise ConnectionError("the connection is closed")
        seconds = self._remaining(deadline)
        if not 0.9 * self._patience <= seconds <= self._patience:  # setting it is a system call
            self._patience = seconds
            connected.settimeout(seconds)
        return connected

    def _remaining(self, deadline: float) -> float:
        seconds = deadline - self._clock()
        if seconds <= 0:
            raise TimeoutError(_TOO_LATE)
        return seconds


def _has_news(connected: socket.socket) -> bool:
    """Nobody has asked anything, so what can be read is the end of the connection: the server was restarted, say."""
    poller = select.poll()
    poller.register(connected, select.POLLIN)
    return bool(poller.poll(0))


def _parts(argument: Argument) -> Sequence[Part]:
    if isinstance(argument, str | int):
        return (str(argument).encode(),)
    return (argument,) if isinstance(argument, bytes | memoryview) else argument
