"""Secrets of the first start: made once, readable by their owner only, the same for everybody who starts at once."""

import os
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from dashboard.secret_files import read_or_create, write_private


def test_a_secret_is_made_once_and_read_ever_after(tmp_path: Path) -> None:
    path = tmp_path / "home" / "secret"
    assert read_or_create(path, lambda: "first") == "first"
    assert read_or_create(path, lambda: "second") == "first"


def test_only_the_owner_can_read_a_secret_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        read_or_create(tmp_path / "home" / "secret", lambda: "s")
    finally:
        os.umask(old)
    assert (tmp_path / "home" / "secret").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_could_read_becomes_private_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old and longer")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_else_is_left_beside_the_secret(tmp_path: Path) -> None:
    read_or_create(tmp_path / "secret", lambda: "s")
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    path = str(tmp_path / "secret")
    with get_context("fork").Pool(8) as pool:
        secrets = set(pool.map(_create, [path] * 40))
    assert len(secrets) == 1
    assert secrets == {Path(path).read_text().strip()}


def test_threads_that_start_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    path = str(tmp_path / "secret")
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(_create, [path] * 64))) == 1


def _create(path: str) -> str:
    return read_or_create(Path(path), lambda: os.urandom(8).hex())
