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
        ("REDIS_URL", "http://:secret@host"),
        ("REDIS_URL", "redis://:secret@127.0.0.1:9/0"),
        ("DATABASE_URL", "mysql://user:secret@host/name"),
        ("DATABASE_URL", "postgres://user:secret@127.0.0.1:9/name"),
    ],
)
def test_a_wrong_unknown_or_useless_variable_stops_the_start_in_one_line_with_its_name(
    tmp_path: Path, name: str, value: str
) -> None:
    result = start(tmp_path, **{name: value})
    assert result.returncode == 1
    assert name in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.stderr


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = start(tmp_path / "file" / "home")
    assert result.returncode == 1
    assert "TIERSCOPE_HOME" in result.stderr
    assert "Traceback" not in result.stderr


def mounted(folder: Path, *options: str) -> bool:
    return not subprocess.run(["mount", *options, "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("-o", "size=4k"), "No space left"), (("-o", "size=64k"), "full"), (("-o", "ro"), "Read-only file system")],
)
def test_a_home_on_a_full_or_read_only_disk_is_told(tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    if not mounted(tmp_path, *options):
        pytest.skip("a small file system cannot be mounted here")
    try:
        if "size=4k" in options:
            (tmp_path / "filler").write_bytes(b"x")
        result = start(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert result.returncode == 1
    assert reason in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_home_in_which_something_is_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "secret-key").write_text("made by an earlier start")
    (tmp_path / "logs").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").mkdir()
    result = start(tmp_path)
    assert result.returncode == 1
    assert result.stderr == f"TIERSCOPE_HOME ({tmp_path}) cannot be used: Is a directory.\n"


def test_a_home_with_a_name_that_is_too_long_is_told(tmp_path: Path) -> None:
    result = start(tmp_path / ("x" * 300))
    assert result.returncode == 1
    assert "TIERSCOPE_HOME" in result.stderr
    assert "File name too long" in result.stderr


def test_a_second_launcher_with_the_same_home_is_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with lock(run), pytest.raises(StartError, match=f"running already with .* \\(process {os.getpid()}\\)"):
        lock(run)
    with lock(run):
        pass


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(StartError, match=r"Cannot listen on 192\.0\.2\.1"):
        check_port("192.0.2.1", 8000)
