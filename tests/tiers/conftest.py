"""A Valkey, and engines over it, for the tests of the remote tier, without Django. Knows nothing about any one test."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.tiers.rig import Build, Clock, Rig, config, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import WriteMode, warm_up


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


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def build(kv_server: ValkeyServer, clock: Clock) -> Iterator[Build]:
    """Engines with 6 blocks of gpu, each with the same server below."""
    rigs: list[Rig] = []

    def rig(mode: WriteMode = WriteMode.WRITE_THROUGH, url: str = kv_server.url, **sizes: int) -> Rig:
        given: dict[str, Any] = {"gpu": 6, "remote": 16, "url": url, "mode": mode}
        settings = config(**given | sizes)
        rigs.append(make_rig(settings, clock=clock))
        return rigs[-1]

    yield rig
    for each in rigs:
        each.cache.close()
