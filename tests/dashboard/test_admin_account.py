"""The first administrator: a random password in a private file, and never a second one."""

from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpRequest

from dashboard.services.accounts import ensure_admin

pytestmark = pytest.mark.django_db


def password(home: Path) -> str:
    return (home / "admin-password").read_text().strip()


def test_the_first_start_makes_an_administrator_with_a_random_password(tmp_path: Path) -> None:
    assert ensure_admin(tmp_path)
    user = authenticate(HttpRequest(), username="admin", password=password(tmp_path))
    assert isinstance(user, User)
    assert user.is_superuser
    assert len(password(tmp_path)) >= 16
    assert (tmp_path / "admin-password").stat().st_mode & 0o777 == 0o600


def test_two_homes_have_two_passwords(tmp_path: Path) -> None:
    ensure_admin(tmp_path / "a")
    User.objects.all().delete()
    ensure_admin(tmp_path / "b")
    assert password(tmp_path / "a") != password(tmp_path / "b")


def test_a_later_start_keeps_a_password_that_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_admin(tmp_path)
    answers = iter(["a new long password"] * 2)
    monkeypatch.setattr("getpass.getpass", lambda prompt="": next(answers))
    call_command("changepassword", "admin")
    assert not ensure_admin(tmp_path)
    assert authenticate(HttpRequest(), username="admin", password="a new long password")
    assert not authenticate(HttpRequest(), username="admin", password=password(tmp_path))


def test_where_there_is_a_superuser_of_another_name_nothing_is_made(tmp_path: Path) -> None:
    User.objects.create_superuser("ada", password="x")
    assert not ensure_admin(tmp_path)
    assert not (tmp_path / "admin-password").exists()


def test_an_ordinary_user_named_admin_is_not_promoted(tmp_path: Path) -> None:
    User.objects.create_user("admin", password="mine")
    with pytest.raises(ValueError, match="is an ordinary user"):
        ensure_admin(tmp_path)
    assert not User.objects.filter(is_superuser=True).exists()


def test_a_new_database_beside_an_old_password_file_takes_the_password_from_it(tmp_path: Path) -> None:
    ensure_admin(tmp_path)
    old = password(tmp_path)
    User.objects.all().delete()
    assert ensure_admin(tmp_path)
    assert authenticate(HttpRequest(), username="admin", password=old)
