"""Signals at any moment of the start: the launcher stops what it has started, says so if it can, and leaves nothing.

Real launcher, real preparation, real supervisord; its programs are cheap, so that there can be many starts.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from scripts import environment, launcher
from scripts.launcher import Launcher
from tests.scripts.started import Start

ROOT = Path(__file__).parents[2]
PROGRAMS = "first: sleep 1000\nsecond: sleep 1000\n"
# A start takes 1.5 to 4 s here: these hit imports, preparation, supervisord and the wait for readiness.
MOMENTS = (0.1, 0.8, 1.6, 3.0)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Start]]:
    starts: list[Start] = []

    def begin(shell: str = 'exec "$@"') -> Start:
        starts.append(Start(tmp_path, PROGRAMS, shell=shell))
        return starts[-1]

    yield begin
    for each in starts:
        for process in each.processes():
            process.kill()
        each.process.wait(10)


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_stop_at_any_moment_of_the_start_leaves_nothing(start: Callable[..., Start], seconds: float) -> None:
    started = start()
    time.sleep(seconds)
    started.process.terminate()
    code = started.process.wait(60)
    assert started.processes() == []
    console = started.console.read_text()
    # Before it listens nothing has been started, and the signal just ends it.
    assert (code, console) == (-signal.SIGTERM, "") or (code == 0 and console.endswith("Stopping …\nStopped.\n"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "shell", "said"),
    [
        (signal.SIGINT, 'exec "$@"', "Stopping …\nStopped.\n"),
        (signal.SIGHUP, 'exec "$@" 0<&- 1>&- 2>&-', ""),
        (signal.SIGTERM, 'exec "$@" 2>/dev/full', ""),
    ],
)
def test_neither_a_second_signal_nor_a_console_that_is_gone_disturbs_a_stop(
    start: Callable[..., Start], number: signal.Signals, shell: str, said: str
) -> None:
    started = start(shell)
    wait_for(lambda: len(started.sleepers()) == 2)
    for _ in range(5):
        started.process.send_signal(number)
    assert started.process.wait(60) == 0
    assert started.processes() == []
    assert started.console.read_text().endswith(said)


@pytest.mark.slow
def test_under_nohup_a_closed_terminal_stops_nothing(start: Callable[..., Start]) -> None:
    started = start("trap '' HUP; exec \"$@\"")
    wait_for(lambda: len(started.sleepers()) == 2)
    started.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert "Stopping" not in started.console.read_text()
    started.process.terminate()
    assert started.process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", MOMENTS[1::2])
def test_a_kill_at_any_moment_of_the_start_leaves_nothing_for_long_and_the_next_start_works(
    start: Callable[..., Start], seconds: float
) -> None:
    started = start()
    time.sleep(seconds)
    started.process.kill()
    started.process.wait(10)
    following = start()
    wait_for(lambda: len(below(following)) == 2)
    assert following.sleepers() == below(following)
    following.process.terminate()
    assert following.process.wait(60) == 0
    assert following.processes() == []


def below(started: Start) -> list[psutil.Process]:
    """Its own programs: those of a start that was killed may still be stopping."""
    children = psutil.Process(started.process.pid).children(recursive=True)
    return [each for each in started.sleepers() if each in children]


def only_child(started: Start) -> int:
    (child,) = psutil.Process(started.process.pid).children()
    return child.pid


@pytest.mark.slow
def test_a_killed_supervisord_takes_its_programs_with_it(start: Callable[..., Start]) -> None:
    started = start()
    wait_for(lambda: len(started.sleepers()) == 2)
    os.kill(only_child(started), signal.SIGKILL)
    assert started.process.wait(60) == 1
    assert started.processes() == []
    assert "supervisord ended by itself" in started.console.read_text()


class ReadyWhenStopped:
    """A probe that finds everything ready in the moment in which somebody stops it."""

    def __init__(self, *_: object) -> None: ...

    def is_ready(self) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    def traffic_progress(self) -> str:
        return "sample traffic: 1 of 60 requests sent"


def test_nothing_is_ready_after_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "Probe", ReadyWhenStopped)
    started = Launcher(environment.read(), ROOT / "Procfile")
    before = signal.signal(signal.SIGTERM, started._on_signal)
    supervisord: Any = subprocess.Popen(["sleep", "60"])
    try:
        started._watch(supervisord, is_new=False)
    finally:
        signal.signal(signal.SIGTERM, before)
        supervisord.kill()
        supervisord.wait()
    assert capfd.readouterr().err == "Stopping …\n"
