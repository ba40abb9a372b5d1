"""What the launcher tells the person in front of it. A terminal or pipe that has gone away is no reason to stop."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def say_in_handler(text: str) -> None:
    """Without lock and buffer: a signal handler may interrupt `say`, or itself, anywhere."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Signals that came before have been handled, and those that come meanwhile wait until the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_signals() -> None:
    """Everything has ended; Python, on its way out, would let one more signal change the exit code."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def fill_standard_descriptors() -> None:
    """A standard descriptor that was closed would go to the next file that is opened, and errors be written into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
