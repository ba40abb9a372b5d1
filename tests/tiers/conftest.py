"""A Valkey for the tests of the remote tier, without Django. Knows nothing about any one test."""

from collections.abc import Iterator

import pytest

from tests.tiers.valkey import ValkeyServer
from tiers import warm_up


@pytest.fixture(scope="session")
def running_kv_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path_factory.mktemp("valkey")).start()
    yield server
    server.kill()


@pytest.fixture
def kv_server(running_kv_server: ValkeyServer) -> ValkeyServer:
    """Empty."""
    running_kv_server.client.flushall()
    return running_kv_server


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """So that no test waits for it in the middle."""
    warm_up()
