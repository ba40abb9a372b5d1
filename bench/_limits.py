"""What is under the tiers, used as directly as can be: memory, files, a server. Knows nothing about caches.

Each function gives a run that moves as many bytes as a prompt's 64 blocks have.
"""

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from mmap import mmap
from pathlib import Path

import numpy as np
import redis

from bench._loading import BATCH_BYTES, NUM_BLOCKS

Run = Callable[[], object]
DEPTH = 4


def plain_copy(num_bytes: int) -> Run:
    source, target = np.ones((2, num_bytes), np.uint8)
    return lambda: np.copyto(target, source)


def write_plain(path: Path) -> Path:
    """One file of 64 blocks' bytes, on the disk."""
    with path.open("wb") as file:
        file.write(os.urandom(BATCH_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return path


def drop_page_cache(folder: Path) -> None:
    """Of all files in the folder, which then lie on the disk alone."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def warm_reads(path: Path) -> dict[str, Run]:
    return {"one read": partial(_read, path, 0, BATCH_BYTES), "reads of 1 MiB": partial(_read, path, 0, 1 << 20)}


def cold_reads(path: Path) -> dict[str, Run]:
    direct = os.O_DIRECT
    return {
        "buffered reads of 1 MiB": partial(_read, path, 0, 1 << 20),
        "one direct read": partial(_read, path, direct, BATCH_BYTES),
        "direct reads of 4 MiB": partial(_read, path, direct, 4 << 20),
        f"direct reads of 1 MiB, depth {DEPTH}": partial(_read_deep, path),
    }


_buffer = mmap(-1, BATCH_BYTES)
_readers = ThreadPoolExecutor(DEPTH)


def _read(path: Path, flags: int, num_bytes: int, start: int = 0, end: int = BATCH_BYTES) -> None:
    view, descriptor = memoryview(_buffer), os.open(path, os.O_RDONLY | flags)
    while start < end:
        start += os.preadv(descriptor, [view[start : min(start + num_bytes, end)]], start)
    os.close(descriptor)


def _read_deep(path: Path) -> None:
    """As fio does it with an iodepth: so many reads under way, the next in line whenever one has ended."""
    step = 1 << 20
    list(
        _readers.map(
            lambda start: _read(path, os.O_DIRECT, step, start, min(start + step, BATCH_BYTES)),
            range(0, BATCH_BYTES, step),
        )
    )


def raw_gets(url: str) -> Run:
    """All values asked for at once, and received into one buffer without a look at them."""
    path = url.removeprefix("unix://").partition("?")[0]
    client = redis.Redis.from_url(url)
    names = sorted(client.scan_iter(match="ts:kv:*:b:*", count=10_000))[:NUM_BLOCKS]
    assert len(names) == NUM_BLOCKS, f"the server has {len(names)} values"
    question = b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(name), name) for name in names)
    num_bytes = sum(len(b"$%d\r\n" % client.strlen(name)) + client.strlen(name) + 2 for name in names)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    target = memoryview(bytearray(num_bytes))

    def get() -> None:
        connection.sendall(question)
        at = 0
        while at < num_bytes:
            at += connection.recv_into(target[at:])

    return get
