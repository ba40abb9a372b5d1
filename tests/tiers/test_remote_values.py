"""Values that come in one compiled call: cut anywhere, with something else among them, or not at all."""

import random
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import xxhash

from tiers.books.xxh3 import new_state
from tiers.remote_values import CLOSED, DONE, END, LATE, OTHER, START, TOO_LONG, Value, take

HEADER, PAYLOAD = 5, 300
HEAD = b"$%d\r\n" % (HEADER + PAYLOAD)
RNG = random.Random(1)
VALUES = [RNG.randbytes(HEADER + PAYLOAD) for _ in range(3)]
TEXT = b"".join(HEAD + value + b"\r\n" for value in VALUES)
WHOLE = len(TEXT) // 3


class Receiver:
    """Takes values from a connection whose other end is `server`."""

    def __init__(self) -> None:
        self.ours, self.server = socket.socketpair()
        self.ours.setblocking(False)
        self.buffer = bytearray(64)
        self.held = np.zeros(2, np.int64)
        self.targets = [bytearray(PAYLOAD) for _ in VALUES]

    def take(self, seconds: float = 30.0, num_values: int = len(VALUES)) -> tuple[list[Value], int]:
        targets = [memoryview(target) for target in self.targets[:num_values]]
        return take(self.ours, memoryview(self.buffer), self.held, HEAD, targets, HEADER, seconds, new_state())

    def rest(self) -> bytes:
        """What was read ahead, and what is still to be read."""
        self.server.close()
        self.ours.setblocking(True)
        ahead = bytes(self.buffer[self.held[START] : self.held[END]])
        return ahead + self.ours.recv(1 << 20)

    def has(self, num_whole: int) -> bool:
        return [bytes(target) for target in self.targets[:num_whole]] == [v[HEADER:] for v in VALUES[:num_whole]]


def outcomes(num_whole: int) -> list[Value]:
    return [(value[:HEADER], xxhash.xxh3_128_digest(value[HEADER:])) for value in VALUES[:num_whole]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with receiver.ours, receiver.server:
        yield receiver


@pytest.mark.parametrize("piece", [1, 2, 7, HEADER, 64, PAYLOAD, len(HEAD) + HEADER + PAYLOAD + 1, len(TEXT)])
def test_values_that_come_in_pieces_are_whole(receiver: Receiver, piece: int) -> None:
    def send() -> None:
        for start in range(0, len(TEXT), piece):
            receiver.server.sendall(TEXT[start : start + piece])

    sender = threading.Thread(target=send)
    sender.start()
    assert receiver.take() == (outcomes(3), DONE)
    sender.join()
    assert receiver.has(3)


def test_what_was_read_ahead_belongs_to_the_next_call(receiver: Receiver) -> None:
    receiver.server.sendall(TEXT)
    for value in VALUES:
        taken, ended = receiver.take(num_values=1)
        assert (taken, ended) == ([(value[:HEADER], xxhash.xxh3_128_digest(value[HEADER:]))], DONE)
        assert bytes(receiver.targets[0]) == value[HEADER:]


@pytest.mark.parametrize("other", [b"$-1\r\n", b"-OOM no\r\n", b"$304\r\n", b"$3050\r\n", b"HTTP/1.1 400", b":1\r\n"])
@pytest.mark.parametrize("num_before", [0, 1, 2])
def test_of_something_else_nothing_is_taken(receiver: Receiver, other: bytes, num_before: int) -> None:
    receiver.server.sendall(TEXT[: num_before * WHOLE] + other)
    assert receiver.take() == (outcomes(num_before), OTHER)
    assert receiver.rest() == other
    assert receiver.has(num_before)


@pytest.mark.parametrize("num_bytes", [0, 1, len(HEAD), len(HEAD) + HEADER + 10, WHOLE - 1, WHOLE + 3])
def test_a_connection_that_ends_leaves_what_came_before(receiver: Receiver, num_bytes: int) -> None:
    receiver.server.sendall(TEXT[:num_bytes])
    receiver.server.close()
    num_whole = num_bytes // WHOLE
    assert receiver.take() == (outcomes(num_whole), CLOSED)


@pytest.mark.parametrize("num_bytes", [0, 3, WHOLE - 1, WHOLE + 100])
def test_what_does_not_come_in_time_is_not_waited_for(receiver: Receiver, num_bytes: int) -> None:
    receiver.server.sendall(TEXT[:num_bytes])
    assert receiver.take(seconds=0.02) == (outcomes(num_bytes // WHOLE), LATE)


def test_a_value_that_does_not_end_where_it_should_is_none(receiver: Receiver) -> None:
    receiver.server.sendall(TEXT[:WHOLE] + HEAD + VALUES[1] + b"more")
    assert receiver.take() == (outcomes(1), TOO_LONG)


def test_a_connection_that_another_thread_closes_ends_the_call(receiver: Receiver) -> None:
    def close() -> None:
        receiver.ours.shutdown(socket.SHUT_RDWR)
        receiver.ours.close()

    closer = threading.Timer(0.05, close)
    closer.start()
    assert receiver.take() == ([], CLOSED)
    closer.join()
