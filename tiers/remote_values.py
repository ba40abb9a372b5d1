"""Values of one length from a socket to where they belong, many in one compiled call. Knows nothing about replies.

Each comes as a fixed head, a block's header, its payload and an end of line. A server on this machine waits whenever
its socket's 200 KB are full, which is while Python looks at a piece.
"""

import os
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tiers.addresses import address_of
from tiers.books import xxh3
from tiers.books.compiled import ADDRESS, INT, LONG, Ints64, aside, part, system

# How a call ended, beside the number of values that are whole: all are; the next one is something else, nothing of it
# is taken; what follows a value is no end of line; the connection has ended; the time is over.
DONE, OTHER, TOO_LONG, CLOSED, LATE = range(5)

Value = tuple[bytes, bytes]  # its header, its payload's XXH3

LINE_END = 2
CR, LF = 13, 10
MONOTONIC = 1  # a clock of the system
POLLIN = 1
NANOSECONDS = 1_000_000_000
MAX_WAIT_MS = 1_000

NUM_WORDS = 4
# Of `sizes`, and of the buffer's `held`.
HEAD, HEADER, PAYLOAD = range(3)
START, END = range(2)


class Socket(NamedTuple):
    """What is read from, by when, and what has been read ahead. `words` are what the system is asked with, and answers.

    They are made by the function whose loop uses them: where a part makes them, numba gives their memory back after the
    last line that names them, which was before `poll` had waited.
    """

    descriptor: Any
    buffer: Any
    held: Ints64
    deadline: Any
    words: Ints64


_poll = system("poll", INT, ADDRESS, LONG, INT)
_readv = system("readv", LONG, INT, ADDRESS, INT)
_clock_gettime = system("clock_gettime", INT, INT, ADDRESS)
_memmove = system("memmove", ADDRESS, ADDRESS, ADDRESS, LONG)


def take(
    connection: socket.socket, buffer: memoryview, held: Ints64, head: bytes, targets: Sequence[memoryview],
    header_bytes: int, seconds: float, state: int,
) -> tuple[list[Value], int]:  # fmt: skip
    """Fills the targets, all of one length, one after the other; `buffer[START:END]`, by `held`, came before.

    The buffer has room for two heads and headers at least, and `state` is XXH3's. Returns those that are whole, and how
    it ended; what comes after them is still to be read.
    """
    headers = np.empty((len(targets), header_bytes), np.uint8)
    digests = np.empty((len(targets), 2), np.uint64)
    addresses = np.array([address_of(target) for target in targets], np.int64)
    sizes = np.array([len(head), header_bytes, len(targets[0])], np.int64)
    own = os.dup(connection.fileno())  # a number that stays ours when another thread closes the connection
    try:
        num_taken, ended = _take_values(
            own, np.frombuffer(buffer, np.uint8), held, np.frombuffer(head, np.uint8), addresses, headers.ctypes.data,
            digests, sizes, int(seconds * NANOSECONDS), state,
        )  # fmt: skip
    finally:
        os.close(own)
    written = xxh3.as_digests(digests)
    return [(headers[number].tobytes(), written[number]) for number in range(num_taken)], ended


@aside
def _take_values(
    descriptor: int, buffer: Any, held: Ints64, head: Any, targets: Ints64, headers: int, digests: Any, sizes: Ints64,
    nanoseconds: int, state: int,
) -> tuple[int, int]:  # fmt: skip
    """`sizes` are the bytes of a head, a header and a payload; returns how many are whole and how it ended."""
    words = np.zeros(NUM_WORDS, np.int64)
    wire = Socket(np.int32(descriptor), buffer, held, _now(words) + nanoseconds, words)
    for number in range(len(targets)):
        ended = _take_head(wire, head, sizes)
        if ended != DONE:
            return number, ended
        start = held[START] + sizes[HEAD]
        _memmove(headers + number * sizes[HEADER], buffer.ctypes.data + start, sizes[HEADER])
        held[START] = start + sizes[HEADER]
        xxh3.reset(state)
        ended = _take_payload(wire, targets[number], sizes, state)
        if ended != DONE:
            return number, ended
        low, high = xxh3.digest(state)
        digests[number, 0], digests[number, 1] = high, low
    return len(targets), DONE


@part
def _take_head(wire: Any, head: Any, sizes: Any) -> Any:
    """Until the whole head and header are in the buffer: as soon as they cannot be what is expected, it is OTHER."""
    num_seen: Any = np.int64(0)
    held, wanted = wire.held, sizes[HEAD] + sizes[HEADER]
    while True:
        num_there = held[END] - held[START]
        while num_seen < min(num_there, sizes[HEAD]):
            if wire.buffer[held[START] + num_seen] != head[num_seen]:
                return OTHER
            num_seen += 1
        if num_there >= wanted:
            return DONE
        num_read = _receive(wire, 0, 0, wanted - num_there)
        if num_read < 0:
            return -num_read


@part
def _take_payload(wire: Any, target: Any, sizes: Any, state: Any) -> Any:
    """The checksum follows what comes in pieces that the processor still has at hand."""
    held = wire.held
    at = min(held[END] - held[START], sizes[PAYLOAD])
    _memmove(target, wire.buffer.ctypes.data + held[START], at)
    xxh3.update(state, target, at)
    held[START] += at
    beyond = LINE_END + sizes[HEAD] + sizes[HEADER]
    while at < sizes[PAYLOAD] or held[END] - held[START] < LINE_END:
        num_read = _receive(wire, target + at, sizes[PAYLOAD] - at, beyond)
        if num_read < 0:
            return -num_read
        xxh3.update(state, target + at, num_read)
        at += num_read
    start = held[START]
    if wire.buffer[start] != CR or wire.buffer[start + 1] != LF:
        return TOO_LONG
    held[START] = start + LINE_END
    return DONE


@part
def _receive(wire: Any, target: Any, num_bytes: Any, beyond: Any) -> Any:
    """Into the target, and up to `beyond` bytes more into the buffer; how many the target got, or the end, negative."""
    held, buffer, words = wire.held, wire.buffer, wire.words
    if held[START] == held[END]:
        held[START] = held[END] = 0
    elif held[END] + beyond > len(buffer):
        _memmove(buffer.ctypes.data, buffer.ctypes.data + held[START], held[END] - held[START])
        held[END] -= held[START]
        held[START] = 0
    while True:
        words[0], words[1] = target, num_bytes
        words[2], words[3] = buffer.ctypes.data + held[END], beyond
        num_read = _readv(wire.descriptor, words.ctypes.data, np.int32(2))
        if num_read > 0:
            held[END] += max(0, num_read - num_bytes)
            return min(num_read, num_bytes)
        if num_read == 0:
            return -CLOSED
        if _now(words) >= wire.deadline:
            return -LATE
        _wait(wire)


@part
def _wait(wire: Any) -> None:
    """Until there is something, or the time is over; what else ends it, the next read tells."""
    left = (wire.deadline - _now(wire.words)) // 1_000_000 + 1
    wire.words[0] = wire.descriptor | POLLIN << 32  # int, short, short
    _poll(wire.words.ctypes.data, np.int64(1), np.int32(max(0, min(left, MAX_WAIT_MS))))


@part
def _now(words: Any) -> Any:
    _clock_gettime(np.int32(MONOTONIC), words.ctypes.data)
    return words[0] * NANOSECONDS + words[1]
