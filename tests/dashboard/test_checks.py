"""The system checks: each finds its problem, says what to do, and is silent where all is well."""

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core import checks as django_checks

from dashboard import checks


class DiskUsage(NamedTuple):
    total: int
    used: int
    free: int


def found(check: Any) -> dict[str, str]:
    """What a check says, by its id; each problem has a hint that says what to do."""
    messages = check(None)
    assert all(message.hint for message in messages)
    return {message.id: message.msg for message in messages}


def test_with_the_settings_of_a_first_start_all_is_well() -> None:
    ours = [message for message in django_checks.run_checks() if (message.id or "").startswith("tierscope.")]
    assert ours == []


def test_a_home_that_is_a_file_is_an_error(settings: Any, tmp_path: Path) -> None:
    settings.TIERSCOPE_HOME = tmp_path / "file"
    settings.TIERSCOPE_HOME.touch()
    assert "is not a folder" in found(checks.check_home)["tierscope.E001"]


def test_a_home_that_cannot_be_written_to_is_an_error(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIERSCOPE_HOME = tmp_path / "new" / "home"
    assert found(checks.check_home) == {}
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write everywhere
    assert "cannot be written to" in found(checks.check_home)["tierscope.E001"]


def test_a_disk_that_is_nearly_full_is_a_warning(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: DiskUsage(2**40, 2**40, 2**20))
    assert "Only 1 MiB is free" in found(checks.check_disk)["tierscope.W001"]


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_on_loopback_neither_token_nor_https_is_asked_for(settings: Any, bind: str) -> None:
    settings.BIND = bind
    assert found(checks.check_exposure) == {}


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "10.0.0.5", "tierscope.example.com"])
def test_what_others_can_reach_needs_a_metrics_token_and_better_https(settings: Any, bind: str) -> None:
    settings.BIND = bind
    assert set(found(checks.check_exposure)) == {"tierscope.E005", "tierscope.W002"}
    settings.METRICS_TOKEN, settings.SESSION_COOKIE_SECURE = "t", True
    assert found(checks.check_exposure) == {}


def test_debug_pages_for_others_are_an_error(settings: Any) -> None:
    settings.BIND, settings.DEBUG = "0.0.0.0", True
    assert "TIERSCOPE_DEBUG is on" in found(checks.check_exposure)["tierscope.E004"]


def test_any_host_name_is_a_warning(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert set(found(checks.check_hosts)) == {"tierscope.W003"}


def test_an_old_sqlite_is_an_error_where_the_store_is_one(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert "expected 3.35 or newer" in found(checks.check_sqlite)["tierscope.E006"]
    settings.DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql"}}
    assert found(checks.check_sqlite) == {}
