"""What an earlier launcher left: told from whatever else has its process number now, stopped, killed if it does not."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import earlier
from scripts.earlier import find_supervisord, finish, is_held
from scripts.run_folder import LAUNCHER_PID, RunFolder
from scripts.supervision import lifeline

SLEEP = "import time; time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEP}"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder.of(tmp_path)
    run.path.mkdir()
    run.lock.write_text(str(os.getpid()))
    run.alive.touch()
    return run


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait(10)
        if process.stdout:
            process.stdout.close()


def program(run: RunFolder, script: str) -> "subprocess.Popen[bytes]":
    """Started as the launcher does, once it says something."""
    command = [*lifeline(LAUNCHER_PID), sys.executable, "-c", f"print('on', flush=True); {script}"]
    environ = os.environ | {"TIERSCOPE_HOME": str(run.path.parent)}
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, env=environ)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_no_file_no_number_and_a_dead_number_mean_nothing_is_left(run: RunFolder) -> None:
    assert finish(run, 1) == []
    run.supervisord_pid.write_text("not a number")
    assert finish(run, 1) == []
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    run.supervisord_pid.write_text(str(ended.pid))
    assert finish(run, 1) == []


def test_another_process_with_the_number_is_left_alone(run: RunFolder) -> None:
    run.supervisord_pid.write_text(str(os.getpid()))
    assert find_supervisord(run) is None


def test_our_supervisord_is_stopped(run: RunFolder, started: list["subprocess.Popen[bytes]"]) -> None:
    started.append(subprocess.Popen([sys.executable, "-c", SLEEP, str(run.config)]))
    run.supervisord_pid.write_text(str(started[0].pid))
    assert finish(run, 10) == []
    assert started[0].wait(1) == -signal.SIGTERM


def test_programs_whose_supervisord_is_gone_are_stopped(
    run: RunFolder, started: list["subprocess.Popen[bytes]"]
) -> None:
    started += [program(run, SLEEP), program(run, SLEEP)]
    assert is_held(run.alive)
    assert finish(run, 10) == []
    assert [process.wait(1) for process in started] == [-signal.SIGTERM, -signal.SIGTERM]


def test_a_program_that_does_not_stop_is_killed(run: RunFolder, started: list["subprocess.Popen[bytes]"]) -> None:
    started.append(program(run, STUBBORN))
    assert started[0].stdout is not None
    assert started[0].stdout.readline() == b"deaf\n"
    assert finish(run, 0.5) == []
    assert started[0].wait(1) == -signal.SIGKILL


def test_what_a_program_started_and_left_is_part_of_it(
    run: RunFolder, started: list["subprocess.Popen[bytes]"]
) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{SLEEP}'], close_fds=False)"
    started.append(program(run, child))
    started[0].wait(10)
    assert is_held(run.alive)
    assert finish(run, 10) == []


def test_waiting_ends_when_the_person_has_enough(run: RunFolder, started: list["subprocess.Popen[bytes]"]) -> None:
    started.append(program(run, STUBBORN))
    assert started[0].stdout is not None
    assert started[0].stdout.readline() == b"deaf\n"  # before, a signal still ends it
    assert finish(run, 60, is_cancelled=lambda: True) == [started[0].pid]


def test_processes_that_cannot_be_killed_are_named(
    run: RunFolder, started: list["subprocess.Popen[bytes]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    started.append(program(run, SLEEP))
    monkeypatch.setattr(earlier, "signal_if_alive", lambda process, number: None)  # another user's
    monkeypatch.setattr(earlier, "_AFTER_KILL_SECONDS", 0.1)
    assert finish(run, 0.1) == [started[0].pid]
