"""The preparation that every start does: what the first one makes, and that later ones leave it alone."""

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
