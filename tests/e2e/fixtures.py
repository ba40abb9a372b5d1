"""`scripted_stack`: the whole product but for the worker, with a scripted engine, up in 4 s."""

from collections.abc import Iterator

import pytest

from tests.e2e.stack import Stack


@pytest.fixture(scope="session")
def scripted_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("scripted"), engine_app="tests.e2e.scripted_engine")
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
