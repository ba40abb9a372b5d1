"""What `make run` is made of: the Procfile, the processes behind it, and the embedded Valkey."""

import os
from pathlib import Path

import pytest
import redis

from dashboard import processes, settings
from dashboard.embedded_valkey import make_folders

ROOT = Path(__file__).parents[1]


def procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return {name.strip(): line.strip() for name, _, line in (text.partition(":") for text in lines if text.strip())}


def test_the_procfile_names_every_process_once() -> None:
    assert sorted(procfile()) == sorted(processes.NAMES)


def test_an_unknown_process_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ValueError, match="choose one of valkey, web, engine, worker"):
        processes.become("nonsense")


def test_the_embedded_valkey_answers_on_its_socket_only(valkey: str) -> None:
    client = redis.Redis.from_url(valkey)
    assert client.ping()
    assert client.config_get("port") == {"port": "0"}


def test_a_folder_that_somebody_else_made_for_the_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folders(tmp_path / "short" / "valkey.sock", tmp_path / "home" / "valkey")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        make_folders(tmp_path / "short" / "valkey.sock", tmp_path / "home" / "valkey")
    make_folders(tmp_path / "home" / "valkey.sock", tmp_path / "home" / "valkey")


def test_the_readme_lists_every_variable_that_there_is() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in settings.env.dump() if f"`{name}`" not in readme] == []
