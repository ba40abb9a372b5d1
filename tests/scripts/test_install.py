"""install.sh with a pip that does nothing: once per change of requirements/, then what was asked for."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install.sh"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("scripts", "requirements", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / "scripts")
    for name in ("run", "model", "dev"):
        (tmp_path / "requirements" / f"{name}.txt").write_text("something\n")
    pip_is(tmp_path, "echo pip >>../log")
    return tmp_path


def pip_is(checkout: Path, script: str) -> None:
    """Stands for the environment's Python: `-c` asks for its version, `-m pip` installs."""
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\ncd "{checkout}/scripts"\ncase "$*" in *"-m pip"*) {script};; esac\n')
    python.chmod(0o755)


def install(checkout: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["scripts/install.sh", *arguments], cwd=checkout, stderr=subprocess.DEVNULL)


def num_pips(checkout: Path) -> int:
    log = checkout / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_it_installs_when_requirements_change_and_only_then(checkout: Path) -> None:
    for expected in (2, 2):
        assert install(checkout, "run").wait(10) == 0
        assert num_pips(checkout) == expected
    (checkout / "requirements" / "run.txt").write_text("something else\n")
    assert install(checkout, "run").wait(10) == 0
    assert num_pips(checkout) == 4


def test_it_becomes_what_comes_after(checkout: Path) -> None:
    for _ in range(2):
        assert install(checkout, "run", "sh", "-c", "exit 7").wait(10) == 7


def test_what_cannot_be_installed_is_not_started_and_tried_again(checkout: Path) -> None:
    pip_is(checkout, "echo pip >>../log; exit 3")
    for expected in (1, 2):
        assert install(checkout, "run", "touch", "started").wait(10) == 1
        assert num_pips(checkout) == expected
    assert not (checkout / "started").exists()


@pytest.fixture
def in_front() -> Iterator[None]:
    """A shell's `&` has what it starts ignore Ctrl-C, with all that comes of it: tests that run so, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("in_front")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_stop_ends_pip_too(checkout: Path, number: signal.Signals) -> None:
    pip_is(checkout, "echo $$ >../pid; exec sleep 60")
    running = install(checkout, "run", "touch", "started")
    while not (checkout / "pid").exists() or not (checkout / "pid").read_text():
        time.sleep(0.02)
    pip = psutil.Process(int((checkout / "pid").read_text()))
    running.send_signal(number)
    assert running.wait(10) != 0
    pip.wait(10)
    assert not (checkout / "started").exists()
