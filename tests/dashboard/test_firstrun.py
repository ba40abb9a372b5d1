"""The preparation that every start does: what the first one makes, and that later ones leave it alone."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model

from dashboard.firstrun import prepare
from dashboard.models import ApiKey, Source


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    settings.TIERSCOPE_HOME = tmp_path
    return tmp_path


@pytest.mark.django_db
def test_the_first_start_makes_what_a_login_and_a_request_need(home: Path) -> None:
    news = list(prepare())
    assert len(news) == 2
    for name in ("admin-password", "api-key"):
        assert (home / name).stat().st_mode & 0o777 == 0o600
    user = get_user_model().objects.get(username="admin")
    assert user.check_password((home / "admin-password").read_text().strip())
    assert ApiKey.objects.filter(name="default", is_active=True).exists()
    assert Source.objects.filter(kind="embedded").exists()
    assert (settings.STATIC_ROOT / "css").is_dir()


@pytest.mark.django_db
def test_a_later_start_changes_nothing_and_has_no_news(home: Path) -> None:
    list(prepare())
    before = {name: (home / name).read_text() for name in ("admin-password", "api-key")}
    get_user_model().objects.get(username="admin").set_password("chosen by a person")
    assert list(prepare()) == []
    assert before == {name: (home / name).read_text() for name in before}


def readable_by_others(home: Path) -> list[str]:
    """What somebody else who may enter `home` could read or write below it."""
    found = [path for path in home.rglob("*") if path.stat().st_mode & 0o077]
    return [str(path.relative_to(home)) for path in found if path.parent == home or not closed_above(path, home)]


def closed_above(path: Path, home: Path) -> bool:
    return any(not folder.stat().st_mode & 0o077 for folder in path.parents if home in folder.parents)


def manage(home: Path, command: str) -> None:
    """As from a shell with the usual umask."""
    environ = os.environ | {"TIERSCOPE_HOME": str(home)}
    del environ["DATABASE_URL"]
    argv = ["sh", "-c", f"umask 022; exec {sys.executable} manage.py {command}"]
    subprocess.run(argv, cwd=Path(__file__).parents[2], env=environ, check=True, capture_output=True, timeout=60)


@pytest.mark.usefixtures("valkey")
def test_in_a_home_that_others_can_enter_nothing_can_be_read_by_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    manage(tmp_path, "firstrun")
    assert (tmp_path / "tierscope.sqlite3").exists()
    assert readable_by_others(tmp_path) == []


@pytest.mark.usefixtures("valkey")
def test_what_an_earlier_version_left_open_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name in ("static", "tiers", "logs"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "tiers" / "local").mkdir(mode=0o755)
    (tmp_path / "tierscope.sqlite3").touch(mode=0o644)
    (tmp_path / "notes").touch(mode=0o644)
    manage(tmp_path, "firstrun")
    assert readable_by_others(tmp_path) == ["notes"], "that is not ours"
