"""The clock of the `default` queue: it runs in its worker, dies with it, and starts again after an error."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dashboard.beat import BeatThread
from tests.e2e.stack import Stack


class Clock:
    """Stands for Celery's service: it fails as often as it is told, then runs until it is stopped."""

    def __init__(self, failures: list[Exception]) -> None:
        self.failures = failures
        self.runs = threading.Event()
        self.stopped = threading.Event()

    def start(self) -> None:
        if self.failures:
            raise self.failures.pop()
        self.runs.set()
        self.stopped.wait(10)

    def stop(self) -> None:
        self.stopped.set()


def test_a_clock_that_fails_is_started_again() -> None:
    clock = Clock([OSError("no space left"), ConnectionError("gave up")])
    beat = BeatThread(lambda: clock, pause_seconds=0.01)
    beat.start()
    assert clock.runs.wait(10)
    beat.stop()
    assert not beat.is_alive()


def test_a_clock_that_does_not_listen_holds_up_no_stop() -> None:
    clock = Clock([])
    clock.stop = lambda: None  # type: ignore[method-assign]  # waits for a broker that is away
    beat = BeatThread(lambda: clock, patience_seconds=0.01)
    beat.start()
    assert clock.runs.wait(10)
    beat.stop()
    clock.stopped.set()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Stack]:
    stack = Stack(tmp_path)
    try:
        stack.manage("firstrun")
        for name in ("valkey", "worker"):
            stack.start_process(name)
        yield stack
    finally:
        stack.stop()


def test_a_killed_worker_leaves_no_clock_behind(worker: Stack) -> None:
    def is_ticking() -> bool:
        with sqlite3.connect(worker.database, timeout=20) as connection:
            return bool(connection.execute("SELECT 1 FROM dashboard_source WHERE last_scraped_at NOT NULL").fetchone())

    worker.wait_until(is_ticking, "the schedule runs", 60)
    processes = [psutil.Process(process.pid) for process in worker.processes.values()]
    assert [child for process in processes for child in process.children(recursive=True)] == []
    worker.kill("worker")
    assert not [process for process in psutil.process_iter() if is_worker_of(process, worker.home)]


def is_worker_of(process: psutil.Process, home: Path) -> bool:
    try:
        is_ours = process.environ().get("TIERSCOPE_HOME") == str(home)
        return is_ours and "worker" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
