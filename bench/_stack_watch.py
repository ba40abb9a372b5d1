"""What a leak would show in: memory, descriptors and threads of each process, keys in Valkey that never expire."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from tests.e2e.stack import Stack


@dataclass(frozen=True)
class Sample:
    """One look at one process. `num_descriptors` counts open files, sockets and pipes."""

    rss_bytes: int
    num_descriptors: int
    num_threads: int


def samples(stack: Stack) -> dict[str, Sample]:
    return {name: _sample(psutil.Process(process.pid)) for name, process in stack.processes.items()}


def _sample(process: psutil.Process) -> Sample:
    with process.oneshot():
        return Sample(process.memory_info().rss, process.num_fds(), process.num_threads())


def lasting_keys(stack: Stack) -> set[str]:
    """Keys without a time to live: whatever is in here for each request stays for ever."""
    with stack.valkey() as valkey:
        return {key for key in valkey.scan_iter(count=1000) if valkey.ttl(key) == -1}


def watch(stack: Stack, seconds: float, every_seconds: float = 10) -> Iterator[tuple[float, dict[str, Sample]]]:
    """A sample now and then until the time is over, also told on the console."""
    started_at = time.monotonic()
    while (age := time.monotonic() - started_at) < seconds:
        told = samples(stack)
        yield age, told
        text = ", ".join(f"{name} {each.rss_bytes >> 20} MiB {each.num_descriptors} fds" for name, each in told.items())
        print(f"{age:5.0f} s: {text}", file=sys.stderr)
        time.sleep(min(every_seconds, max(0.0, seconds - age)))
