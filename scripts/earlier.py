"""What an earlier launcher left behind when it was killed: supervisord or its programs may still be stopping.

Every program holds a shared lock on `alive` (scripts/lifeline.py), so nothing is left once we get it for ourselves.
"""

import fcntl
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from scripts.run_folder import RunFolder

_POLL_SECONDS = 0.1
_AFTER_KILL_SECONDS = 10


def finish(run: RunFolder, seconds: float, is_cancelled: Callable[[], bool] = lambda: False) -> list[int]:
    """Stops what is left, in supervisord's order where that still lives, and kills what has not ended after `seconds`.

    Returns the ids of the processes that are still there: none, unless it was cancelled or they cannot be killed.
    """
    run.alive.touch(mode=0o600)
    # Killed, supervisord cannot stop its programs any more: those are the last step.
    after_kill = (signal.SIGKILL, _AFTER_KILL_SECONDS)
    for number, patience in ((signal.SIGTERM, seconds), after_kill, after_kill):
        for process in find(run):
            signal_if_alive(process, number)
        until = time.monotonic() + patience
        while is_anything_left(run) and time.monotonic() < until and not is_cancelled():
            time.sleep(_POLL_SECONDS)
        if is_cancelled() or not is_anything_left(run):
            break
    return [process.pid for process in find(run)]


def is_anything_left(run: RunFolder) -> bool:
    return is_held(run.alive) or find_supervisord(run) is not None


def find(run: RunFolder) -> list[psutil.Process]:
    """The supervisord of this home, which stops its programs; without one, the programs."""
    supervisord = find_supervisord(run)
    if supervisord is not None:
        return [supervisord]
    alive = run.alive.resolve()
    return [process for process in psutil.process_iter() if has_open(process, alive)] if is_held(run.alive) else []


def find_supervisord(run: RunFolder) -> psutil.Process | None:
    """None where nothing, or another program, has the number in its file."""
    try:
        process = psutil.Process(int(run.supervisord_pid.read_text()))
        return process if str(run.config) in process.cmdline() else None
    except (OSError, ValueError, psutil.Error):
        return None


def is_held(alive: Path) -> bool:
    """Whether any program that the lifeline started is still there."""
    with alive.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def has_open(process: psutil.Process, path: Path) -> bool:
    try:
        return any(Path(file.path) == path for file in process.open_files())
    except (OSError, psutil.Error):
        return False


def signal_if_alive(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.Error:
        return
