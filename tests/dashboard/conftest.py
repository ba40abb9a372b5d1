"""What the dashboard's tests share."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

if TYPE_CHECKING:
    from dashboard.models import TierSetting


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any) -> None:
    """Pages name static files as they are called here: hashed names need collectstatic first."""
    backend = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": backend}}


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """The real hash is slow on purpose, half a second of a core."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def admin(client: Client) -> Client:
    """Logged in as an administrator called ada."""
    from django.contrib.auth.models import User

    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def cpu() -> "TierSetting":
    """The row of the cpu tier, of an engine with three."""
    from tests.dashboard.tier_pages import cpu_setting

    return cpu_setting()


@pytest.fixture
def replay_home(tmp_path: Path, settings: Any) -> Path:
    """A home for the traces of one test, and a worker that holds no replay."""
    from tests.dashboard.replaying import forget

    settings.TIERSCOPE_HOME = tmp_path
    forget()
    return tmp_path


@pytest.fixture(scope="session")
def sqlite_store_url(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> str:
    from tests.dashboard.stores import migrated
    from tests.e2e.made_home import copy_migrated

    file: Path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    copy_migrated(file)
    return migrated(f"sqlite:///{file}", django_db_blocker)


@pytest.fixture(scope="session")
def postgres_store_url(postgres_url: str, django_db_blocker: Any) -> str:
    from tests.dashboard.stores import migrated

    return migrated(postgres_url, django_db_blocker)


@pytest.fixture(scope="session", params=["prometheus", "victoria-metrics"])
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Prometheus with a known history, and of a VictoriaMetrics with the same."""
    from tests.dashboard.past import past_prometheus, past_victoria

    if shutil.which(request.param) is None:
        pytest.skip(f"apt-get install {request.param}")
    begun = past_prometheus if request.param == "prometheus" else past_victoria
    with begun(tmp_path_factory.mktemp(request.param)) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[str]:
    """An empty real database, one after the other a SQLite file and a PostgreSQL, with real commits. Its kind."""
    from tests.dashboard.stores import empty, sqlite_settings, used_as_default

    name = "sqlite_store_url" if request.param == "sqlite" else "postgres_store_url"
    url: str = request.getfixturevalue(name)
    with used_as_default(url, django_db_blocker, **sqlite_settings(url)):
        empty()
        yield request.param
