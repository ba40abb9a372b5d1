"""Static files are collected when something about them changed, and only then."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.finders import FileSystemFinder

from dashboard import static_storage


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """The commands that were run."""
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.STATIC_ROOT.mkdir()
    settings.STATICFILES_DIRS = [tmp_path / "static"]
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "page.css").write_text("p {}")
    made: list[str] = []
    monkeypatch.setattr(static_storage, "get_finders", lambda: [FileSystemFinder()])
    monkeypatch.setattr(static_storage, "call_command", lambda name, **options: made.append(name))
    return made


def test_the_first_start_collects_and_a_later_one_does_not(calls: list[str]) -> None:
    static_storage.collect()
    static_storage.collect()
    assert calls == ["collectstatic"]


def test_a_changed_or_a_new_file_is_collected(calls: list[str], tmp_path: Path) -> None:
    static_storage.collect()
    (tmp_path / "static" / "page.css").write_text("p {margin: 0}")
    static_storage.collect()
    (tmp_path / "static" / "more.css").write_text("p {}")
    static_storage.collect()
    assert len(calls) == 3
