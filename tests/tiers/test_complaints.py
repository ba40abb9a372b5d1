"""The log says why copies failed, once a minute for each tier and direction."""

from pathlib import Path

import pytest

from tests.tiers.rig import Clock, config, keys_of, make_rig
from tiers import Tier
from tiers.complaints import Complaints
from tiers.disk import DiskStore


def test_one_line_a_minute_tells_how_many_others_there_were(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complaints = Complaints(Tier.DISK, clock)
    for _ in range(3):
        complaints.add("store", OSError(28, "No space left on device"))
    complaints.add("load", "it is gone")
    clock.now += 60
    complaints.add("store", "the disk is full")
    assert caplog.messages == [
        "a block could not be stored in the disk tier: [Errno 28] No space left on device",
        "a block could not be read from the disk tier: it is gone",
        "a block could not be stored in the disk tier: the disk is full (2 others since the last such line)",
    ]


@pytest.fixture
def picky_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has no room for the first block of a prompt."""
    write = DiskStore.write

    def refusing(
        store: DiskStore, key: bytes, parent_key: bytes, position: int, slab: memoryview, tenant: str = ""
    ) -> None:
        if position == 0:
            raise OSError(28, "No space left on device")
        write(store, key, parent_key, position, slab)

    monkeypatch.setattr(DiskStore, "write", refusing)


@pytest.mark.usefixtures("picky_disk")
def test_a_store_that_fails_is_said_and_what_followed_its_block_is_counted_as_orphaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(config(gpu=2, disk=8, path=tmp_path))
    rig.request(keys_of([1, 2]))
    rig.request(keys_of([10, 11]))
    stats = rig.cache.stats()[Tier.DISK]
    assert (stats.errors["store"], stats.evicted_blocks["orphaned"], stats.evicted_blocks["capacity"]) == (1, 1, 0)
    assert "could not be stored in the disk tier: [Errno 28] No space left on device" in caplog.text
    rig.cache.close()
