"""Reads a file and waits for a value of a server; its own program, for the C library overwrites what is freed in it.

Prints what came and whether anybody waited too long or in a busy loop.
"""

import mmap
import os
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tiers import SlabSpec
from tiers.books.xxh3 import new_state
from tiers.disk import DiskStore
from tiers.remote_values import take

SLAB = SlabSpec(mmap.PAGESIZE, "uint8", (mmap.PAGESIZE,))
KEY, CONTENT = b"k" * 16, os.urandom(SLAB.num_bytes)
WAIT_SECONDS = 0.25


def reads_a_file(folder: Path) -> bool:
    store = DiskStore(folder, SLAB, 4, "test")
    store.write(KEY, b"r" * 16, 0, memoryview(CONTENT))
    target = memoryview(mmap.mmap(-1, SLAB.num_bytes))
    store.read(KEY, target)
    return target == CONTENT


def waits_for_a_value() -> bool:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    target = memoryview(bytearray(8))
    timer = threading.Timer(WAIT_SECONDS, theirs.sendall, (b"$h12345678\r\n",))
    timer.start()
    began_at, worked_before = time.monotonic(), time.process_time()
    take(ours, memoryview(bytearray(64)), np.zeros(2, np.int64), b"$", [target], 1, 30.0, new_state())
    seconds, worked = time.monotonic() - began_at, time.process_time() - worked_before
    timer.join()
    return bytes(target) == b"12345678" and seconds < 0.9 and worked < WAIT_SECONDS / 3


if __name__ == "__main__":
    waits_for_a_value()  # compiles it
    print(reads_a_file(Path(sys.argv[1])), waits_for_a_value())
