"""Writes a block again and again, killed by SIGKILL at another system call each time; its own program, for it forks.

After each death the folder is looked at as the next start would: blocks that are whole, or nothing. Prints how many
steps there were.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tiers import SlabSpec
from tiers.disk import DiskStore

SLAB = SlabSpec(4096, "uint8", (4096,))
OLD, NEW = b"o" * 16, b"n" * 16
STEPS = ("open", "writev", "close", "replace", "unlink", "mkdir", "rename", "ftruncate")


class Killer:
    """Lets `num_steps` system calls pass and dies in the next one; a write is cut in half first."""

    def __init__(self, num_steps: int) -> None:
        self._left = num_steps

    def wrap(self, name: str) -> None:
        call: Callable[..., Any] = getattr(os, name)

        def killing(*args: Any, **options: Any) -> Any:
            if self._left == 0:
                if name == "writev":
                    os.write(args[0], b"".join(args[1])[:300])
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
            return call(*args, **options)

        setattr(os, name, killing)


def write(store: DiskStore, key: bytes) -> None:
    store.write(key, b"r" * 16, 0, memoryview(key * (SLAB.num_bytes // len(key))))


def die_after(num_steps: int, folder: Path) -> bool:
    """True if the child was killed, False if it came to its end."""
    child = os.fork()
    if child == 0:
        store = DiskStore(folder, SLAB, 4, "x")
        killer = Killer(num_steps)
        for name in STEPS:
            killer.wrap(name)
        write(store, NEW)
        write(store, OLD)
        store.set_aside(NEW)
        write(store, OLD)
        write(store, NEW)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def check(folder: Path) -> None:
    store = DiskStore(folder, SLAB, 4, "x")
    found = {header.key for header in store.scan()}
    assert found <= {OLD, NEW}, f"a stranger was found: {found}"
    assert OLD in found, "a block that had been written whole is lost"
    for key in found:
        target = bytearray(SLAB.num_bytes)
        store.read(key, memoryview(target))
        assert bytes(target) == key * (SLAB.num_bytes // len(key)), "a block has other bytes"
    assert not list(store.folder.rglob("*.tmp")), "a leftover stays"
    for key in found - {OLD}:
        store.remove(key)


def main(folder: Path) -> None:
    write(DiskStore(folder, SLAB, 4, "x"), OLD)
    for num_steps in count():
        was_killed = die_after(num_steps, folder)
        check(folder)
        if not was_killed:
            print(num_steps)
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
