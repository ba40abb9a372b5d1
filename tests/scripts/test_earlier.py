"""Telling an earlier supervisord from whatever else has its process number now."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.earlier import find_supervisord, finish


def test_no_file_no_number_and_a_dead_number_mean_nothing_is_left(tmp_path: Path) -> None:
    config, pid_file = tmp_path / "supervisord.conf", tmp_path / "supervisord.pid"
    assert finish(pid_file, config, 1)
    pid_file.write_text("not a number")
    assert finish(pid_file, config, 1)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    pid_file.write_text(str(ended.pid))
    assert finish(pid_file, config, 1)


def test_another_process_with_the_number_is_left_alone(tmp_path: Path) -> None:
    pid_file = tmp_path / "supervisord.pid"
    pid_file.write_text(str(os.getpid()))
    assert find_supervisord(pid_file, tmp_path / "supervisord.conf") is None


def test_ours_is_stopped(tmp_path: Path) -> None:
    config, pid_file = tmp_path / "supervisord.conf", tmp_path / "supervisord.pid"
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(config)])
    pid_file.write_text(str(sleeper.pid))
    assert finish(pid_file, config, 10)
    sleeper.wait(1)
