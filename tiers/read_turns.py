"""The compiled part of `block_reads`: takes files by turns, reads them and says what they were found to be.

Knows nothing about Python's objects; many threads are in it at once.
"""

import fcntl
import mmap
import os
from typing import Any

import numpy as np

from tiers.books import xxh3
from tiers.books.compiled import ADDRESS, INT, LONG, Ints64, Words, aside, part, system
from tiers.books.counter import next_at
from tiers.books.header import FINDINGS, HEADER_BYTES, verdict
from tiers.keys import KEY_BYTES

# Of the page cache in one call: its checksum is taken while the processor has it at hand (14 GB/s a thread; 12.5).
PIECE_BYTES = 256 << 10
# What else a file was found to be, beside `FINDINGS`; negative: why the system did not read it, its number of an error.
UNREAD, OTHER_LENGTH = range(len(FINDINGS) + 1, len(FINDINGS) + 3)

# A pipe in a file's place is not waited for.
OPEN_FLAGS, SET_FLAGS, DIRECT = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, fcntl.F_SETFL, os.O_DIRECT
PAGE = mmap.PAGESIZE
# Of `sizes`.
PAYLOAD, FILE, ALIGNED, CALL, FOLDER_AT, NAME_AT = range(6)
# What the system is asked with, and answers. Made by the function whose loop uses it: where a part does, numba gives
# the memory back after the last line that names it, which may be before the system looks there.
NUM_WORDS = 8
DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)

_open = system("open", INT, ADDRESS, INT)
_close = system("close", INT, INT)
_fcntl = system("fcntl", INT, INT, INT, INT)
_preadv = system("preadv", LONG, INT, ADDRESS, INT, LONG)
_syscall = system("syscall", LONG, LONG, LONG, ADDRESS, ADDRESS, LONG)
_errno_at = system("__errno_location", ADDRESS)
_memmove = system("memmove", ADDRESS, ADDRESS, ADDRESS, LONG)


@aside
def read_turns(
    path: Words, keys: Words, targets: Ints64, expected: Words, sizes: Ints64, turn: Ints64, found: Ints64
) -> None:
    """`sizes`: a payload's bytes, a file's, the alignment, the system call, and where in a path its digits are."""
    own, room = path.copy(), np.empty(2 * PAGE + xxh3.STATE_BYTES, np.uint8)
    start = -room.ctypes.data % PAGE
    end, state = room[start : start + PAGE], room[start + PAGE :].ctypes.data
    words = np.zeros(NUM_WORDS, np.int64)
    while True:
        number = next_at(turn.ctypes.data)
        if number >= len(keys):
            return
        _name(own, keys[number], sizes)
        found[number] = _read_block(own, keys[number], targets[number], end, expected, sizes, state, words)


@part
def _name(path: Any, key: Any, sizes: Any) -> None:
    for place in range(KEY_BYTES):
        path[sizes[NAME_AT] + 2 * place] = DIGITS[key[place] >> 4]
        path[sizes[NAME_AT] + 2 * place + 1] = DIGITS[key[place] & 15]
    for place in range(2):
        path[sizes[FOLDER_AT] + place] = path[sizes[NAME_AT] + place]


@part
def _read_block(path: Any, key: Any, target: Any, end: Any, expected: Any, sizes: Any, state: Any, words: Any) -> Any:
    """What the file was found to be; the payload is in the target, the header in `end`: a page is more than that.

    So a file that is too long is noticed, and past the cache only whole sectors are read.
    """
    descriptor = _open(path.ctypes.data, np.int32(OPEN_FLAGS))
    if descriptor < 0:
        return _refused(words)
    num_read: Any = np.int64(-1)
    is_aligned = target % sizes[ALIGNED] == 0 and sizes[PAYLOAD] % sizes[ALIGNED] == 0
    if is_aligned and not _is_cached(descriptor, sizes, words):
        _fcntl(descriptor, np.int32(SET_FLAGS), np.int32(DIRECT))
        num_read = _read(descriptor, target, end, sizes, words, 0, sizes[PAYLOAD])
        _fcntl(descriptor, np.int32(SET_FLAGS), np.int32(0))
        if num_read == sizes[FILE]:
            low, high = xxh3.xxh3_128(target, sizes[PAYLOAD])
    if num_read != sizes[FILE]:  # in the cache, or a file system that cannot pass it by
        num_read = _fill(descriptor, target, end, sizes, state, words)
        low, high = xxh3.digest(state)
    found = _refused(words) if num_read < 0 else OTHER_LENGTH
    _close(descriptor)
    return verdict(end[:HEADER_BYTES], key, expected, low, high) if num_read == sizes[FILE] else found


@part
def _is_cached(descriptor: Any, sizes: Any, words: Any) -> Any:
    """Whether the page cache has all of it; True also where the system does not tell."""
    asked = words.ctypes.data  # from, length; then five numbers, the first of which are the pages that it has
    words[0], words[1] = 0, sizes[PAYLOAD]
    refused = _syscall(sizes[CALL], np.int64(descriptor), asked, asked + 16, 0)
    return refused != 0 or words[2] * PAGE >= sizes[PAYLOAD]


@part
def _fill(descriptor: Any, target: Any, end: Any, sizes: Any, state: Any, words: Any) -> Any:
    """Until the file ends or has been as long as it should; `state` has the payload's checksum then."""
    xxh3.reset(state)
    total: Any = np.int64(0)
    while total < sizes[FILE]:
        num_read = _read(descriptor, target, end, sizes, words, total, PIECE_BYTES)
        if num_read <= 0:
            return total if num_read == 0 else num_read
        num_payload = min(num_read, sizes[PAYLOAD] - total)
        if num_payload > 0:
            xxh3.update(state, target + total, num_payload)
        total += num_read
    return total


@part
def _read(descriptor: Any, target: Any, end: Any, sizes: Any, words: Any, start: Any, num_bytes: Any) -> Any:
    """From `start` on at most so many bytes into the target, and where that is full then, the rest into `end`."""
    first, second = min(start, sizes[PAYLOAD]), max(0, start - sizes[PAYLOAD])
    num_first = min(num_bytes, sizes[PAYLOAD] - first)
    words[0], words[1] = target + first, num_first
    words[2], words[3] = end.ctypes.data + second, PAGE - second
    num_places = 2 if first + num_first == sizes[PAYLOAD] else 1
    return _preadv(descriptor, words.ctypes.data, np.int32(num_places), start)


@part
def _refused(words: Any) -> Any:
    """Why, as what the file was found to be."""
    words[0] = 0
    _memmove(words.ctypes.data, _errno_at(), 4)
    return -words[0]
