"""What tests of dashboards share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.harness import Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = make_rig(
        gpu=24, cpu=16, disk=64, path=tmp_path, max_num_batched_tokens=96, tenants=("common",), max_tenants=3
    )
    yield rig
    rig.close()
