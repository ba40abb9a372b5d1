"""API keys: shown once, stored hashed, revocable; the default one is made at the first start only."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from dashboard.models import ApiKey
from dashboard.services.api_keys import create_api_key, ensure_default_key, find_api_key, record_use

pytestmark = pytest.mark.django_db


def test_a_key_is_found_by_itself_and_stored_only_as_a_hash() -> None:
    row, key = create_api_key("ci")

    assert find_api_key(key) == row
    assert find_api_key(key + "x") is None
    assert len(key) > 40
    assert key not in str(ApiKey.objects.values().get())
    assert row.prefix == key[:9]


def test_a_revoked_key_is_not_found() -> None:
    row, key = create_api_key("ci")
    row.is_active = False
    row.save()

    assert find_api_key(key) is None


def test_a_name_that_is_taken_is_refused_in_a_sentence() -> None:
    create_api_key("ci")
    with pytest.raises(ValueError, match="There is an API key named “ci” already"):
        create_api_key("ci")


def test_the_last_use_is_written_at_most_once_a_minute() -> None:
    row, key = create_api_key("ci")
    now = timezone.now()
    for seconds in (0, 30, 59, 61):
        found = find_api_key(key)
        assert found is not None
        record_use(found, now + timedelta(seconds=seconds))
        row.refresh_from_db()
        assert row.last_used_at == now + timedelta(seconds=61 if seconds == 61 else 0)


def test_the_default_key_is_made_once_and_kept_in_a_private_file(tmp_path: Path) -> None:
    assert ensure_default_key(tmp_path)
    assert not ensure_default_key(tmp_path)

    file = tmp_path / "api-key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert find_api_key(file.read_text().strip()) == ApiKey.objects.get(name="default")


def test_a_key_file_that_outlived_its_database_is_the_key_again(tmp_path: Path) -> None:
    ensure_default_key(tmp_path)
    ApiKey.objects.all().delete()
    key = (tmp_path / "api-key").read_text().strip()

    assert ensure_default_key(tmp_path)
    assert find_api_key(key) is not None


def test_a_revoked_default_key_stays_revoked(tmp_path: Path) -> None:
    ensure_default_key(tmp_path)
    ApiKey.objects.update(is_active=False)

    assert not ensure_default_key(tmp_path)
    assert find_api_key((tmp_path / "api-key").read_text().strip()) is None


def test_the_command_prints_the_key_and_refuses_a_taken_name(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("createapikey", "search team")

    assert find_api_key(capsys.readouterr().out.strip()) is not None
    with pytest.raises(CommandError, match="choose another name"):
        call_command("createapikey", "search team")


def test_the_command_gives_a_key_its_tenant_and_refuses_what_is_none() -> None:
    call_command("createapikey", "acme 1", tenant="acme")
    assert ApiKey.objects.get().tenant == "acme"
    with pytest.raises(CommandError, match="“Acme Inc” is no tenant"):
        call_command("createapikey", "acme 2", tenant="Acme Inc")
    assert ApiKey.objects.count() == 1


def test_a_use_that_cannot_be_written_down_refuses_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(*_: object, **__: object) -> int:
        raise OperationalError("database is locked")

    row, _ = create_api_key("ci")
    monkeypatch.setattr("django.db.models.query.QuerySet.update", locked)
    record_use(row, timezone.now())
    assert "the use of the API key ci was not noted: database is locked" in caplog.text
