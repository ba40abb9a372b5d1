"""Becomes a program that ends with its parent, and whose life everybody can see. Knows nothing about what it does.

`python -m scripts.lifeline PARENT PROGRAM ARGUMENT…`, where the parent's process id is in TIERSCOPE_HOME/run/PARENT.
"""

import ctypes
import fcntl
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from scripts.run_folder import RunFolder

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> NoReturn:
    parent, *program = arguments
    run = RunFolder.of(Path(os.environ["TIERSCOPE_HOME"]))
    end_with_parent()
    if not is_parent(run.path / parent):
        sys.exit()
    hold(run.alive)
    os.execvp(program[0], program)


def end_with_parent() -> None:
    """Linux sends SIGTERM to this process, also after an exec, when its parent dies. Elsewhere nothing does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def is_parent(pid_file: Path) -> bool:
    """False where our parent is not the one in `pid_file`: that died before `end_with_parent`, and no signal will come.

    A file that could not be written (a full disk) says nothing against it.
    """
    try:
        return int(pid_file.read_text()) == os.getppid()
    except (OSError, ValueError):
        return True


def hold(alive_file: Path) -> None:
    """A shared lock on `alive_file` that is given up when this process and all that it starts have ended."""
    descriptor = os.open(alive_file, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    fcntl.flock(descriptor, fcntl.LOCK_SH)


if __name__ == "__main__":
    main(sys.argv[1:])
