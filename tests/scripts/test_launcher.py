"""How `make run` refuses to start: one clear sentence, exit code 1, and nothing left behind."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.launcher import StartError, check_port, lock
from scripts.run_folder import RunFolder

ROOT = Path(__file__).parents[2]


def start(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    return subprocess.run(
        [sys.executable, "-m", "scripts.run"],
        cwd=ROOT,
        env=kept | {"TIERSCOPE_HOME": str(home)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_port_in_use_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = start(tmp_path, PORT=str(port))
    assert result.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "70000"),
        ("TIERSCOPE_DEVICE", "abacus"),
        ("TIERSCOPE_GPU_BYTES", "2 potatoes"),
        ("TIERSCOPE_SAMPLE_TRAFFIC", "perhaps"),
        ("TIERSCOPE_SMAPLE_TRAFFIC", "0"),
    ],
)
def test_a_wrong_or_unknown_variable_stops_the_start_with_its_name(tmp_path: Path, name: str, value: str) -> None:
    result = start(tmp_path, **{name: value})
    assert result.returncode == 1
    assert name in result.stderr
    assert "Traceback" not in result.stderr


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = start(tmp_path / "file" / "home")
    assert result.returncode == 1
    assert "TIERSCOPE_HOME" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_launcher_with_the_same_home_is_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with lock(run), pytest.raises(StartError, match=f"running already with .* \\(process {os.getpid()}\\)"):
        lock(run)
    with lock(run):
        pass


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(StartError, match=r"Cannot listen on 192\.0\.2\.1"):
        check_port("192.0.2.1", 8000)
