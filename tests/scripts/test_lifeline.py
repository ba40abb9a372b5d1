"""A program never outlives whoever supervises it, however that ended and at whatever moment."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from scripts.lifeline import is_parent
from scripts.run_folder import LAUNCHER_PID, RunFolder
from scripts.supervision import lifeline

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")


def parent(run: RunFolder, what_it_does: str) -> "subprocess.Popen[bytes]":
    """A process that starts a program that writes its id into `child` and then sleeps, and itself does something."""
    program = f"import os, pathlib, time; pathlib.Path({str(run.path / 'child')!r}).write_text(str(os.getpid())); "
    command = [sys.executable, *lifeline(LAUNCHER_PID), sys.executable, "-c", f"{program} time.sleep(60)"]
    script = f"""
        import os, pathlib, subprocess, time
        pathlib.Path({str(run.lock)!r}).write_text(str(os.getpid()))
        subprocess.Popen({command!r}, start_new_session=True)
        {what_it_does}
    """
    environ = os.environ | {"TIERSCOPE_HOME": str(run.path.parent)}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], env=environ)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder.of(tmp_path)
    run.path.mkdir()
    run.alive.touch()
    return run


@linux_only
def test_a_program_ends_when_its_parent_is_killed(run: RunFolder) -> None:
    process = parent(run, "time.sleep(60)")
    while not (run.path / "child").exists() or not (run.path / "child").read_text():
        time.sleep(0.02)
    child = psutil.Process(int((run.path / "child").read_text()))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    child.wait(10)


@linux_only
def test_a_program_whose_parent_was_killed_before_it_could_listen_is_not_started(run: RunFolder) -> None:
    parent(run, "os.kill(os.getpid(), 9)").wait(10)
    time.sleep(1)  # far more than the lifeline needs to find out
    assert not (run.path / "child").exists()


def test_only_the_process_with_the_number_in_the_file_is_the_parent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    assert is_parent(pid_file), "nobody could write it"
    pid_file.write_text(str(os.getppid()))
    assert is_parent(pid_file)
    pid_file.write_text(str(os.getpid()))
    assert not is_parent(pid_file)
