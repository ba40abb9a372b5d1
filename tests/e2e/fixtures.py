"""`live_stack`: the whole product with the real model. `scripted_stack`: the same with a scripted engine, up in 4 s."""

from collections.abc import Iterator

import pytest

from tests.e2e.stack import Stack

# Small tiers, so that a few short requests already overflow from one into the next (a block is 0.7 MiB).
SMALL_TIERS = {
    "TIERSCOPE_GPU_BYTES": "64 MiB",
    "TIERSCOPE_CPU_BYTES": "64 MiB",
    "TIERSCOPE_DISK_BYTES": "512 MiB",
}


@pytest.fixture(scope="session")
def live_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Web, engine worker with SmolLM2, worker with beat, Valkey. Shared by the session: leave it as you found it."""
    stack = Stack(tmp_path_factory.mktemp("live"), names=("valkey", "web", "engine", "worker"), env=SMALL_TIERS)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def scripted_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("scripted"), engine_app="tests.e2e.scripted_engine")
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
