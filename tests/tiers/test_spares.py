"""Files kept to be written over: at most as many as there are blocks to come, and all of them are used or go."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers.rig import ROOT, SLAB, config, content, keys_of, make_rig
from tiers import Tier, WriteMode
from tiers.disk import DiskStore
from tiers.spares import Spares

KEYS = keys_of(range(4))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))))
def test_there_are_never_more_than_blocks_to_come_and_no_file_is_counted_twice(
    turns: list[tuple[int, int, int, int]],
) -> None:
    """Each turn: blocks that begin to come, those of them that are written now, files that leave, writes that end."""
    spares, files, num_waiting, num_writing = Spares(), 0, 0, 0
    for num_new, num_writes, num_leaving, num_ended in turns:
        num_waiting += num_new
        num_writes = min(num_writes, num_waiting)
        num_waiting -= num_writes
        num_aside, num_dropped = spares.submit(num_leaving, num_writes, num_waiting + num_writing + num_writes)
        num_writing += num_writes
        assert 0 <= num_aside <= num_leaving
        files = max(0, files + num_aside - num_writes) - num_dropped
        assert files == spares.num_kept <= num_waiting
        for _ in range(min(num_ended, num_writing)):
            spares.written()
            num_writing -= 1
    spares.submit(0, 0, num_writing)
    assert num_waiting or not spares.num_kept


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path, SLAB, 4, "test")


def write(store: DiskStore, key: bytes) -> Path:
    store.write(key, ROOT, 0, memoryview(content(key)))
    return store.path_of(key)


def read(store: DiskStore, key: bytes) -> bytes:
    target = bytearray(SLAB.num_bytes)
    store.read(key, memoryview(target))
    return bytes(target)


def files_of(store: DiskStore) -> list[Path]:
    return sorted(path for path in store.folder.rglob("*") if path.is_file() and path.name != ".lock")


def test_a_block_is_written_over_the_file_of_one_that_was_set_aside(store: DiskStore) -> None:
    old = write(store, KEYS[0]).stat().st_ino
    store.set_aside(KEYS[0])
    assert not store.path_of(KEYS[0]).exists()
    new = write(store, KEYS[1])
    assert new.stat().st_ino == old
    assert files_of(store) == [new]
    assert read(store, KEYS[1]) == content(KEYS[1])


def test_the_same_block_may_come_again_over_its_own_file(store: DiskStore) -> None:
    write(store, KEYS[0])
    store.set_aside(KEYS[0])
    write(store, KEYS[0])
    assert read(store, KEYS[0]) == content(KEYS[0])
    assert files_of(store) == [store.path_of(KEYS[0])]


@pytest.mark.parametrize("num_bytes", [0, 10, 100_000])
def test_a_file_of_another_length_becomes_as_long_as_a_block(store: DiskStore, num_bytes: int) -> None:
    write(store, KEYS[0]).write_bytes(b"x" * num_bytes)
    store.set_aside(KEYS[0])
    assert write(store, KEYS[1]).stat().st_size == store.file_bytes
    assert read(store, KEYS[1]) == content(KEYS[1])


def test_a_file_that_is_gone_cannot_be_set_aside_and_one_that_goes_later_is_no_harm(store: DiskStore) -> None:
    store.set_aside(KEYS[0])
    write(store, KEYS[1])
    store.set_aside(KEYS[1])
    for path in files_of(store):
        path.unlink()
    write(store, KEYS[2])
    assert read(store, KEYS[2]) == content(KEYS[2])


def test_a_write_that_fails_before_it_has_begun_keeps_no_file_either(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(slab: memoryview) -> memoryview:
        raise MemoryError

    write(store, KEYS[0])
    store.set_aside(KEYS[0])
    monkeypatch.setattr(store._layout.codec, "encode", refuse)
    with pytest.raises(MemoryError):
        write(store, KEYS[1])
    assert not files_of(store)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nothing_is_written_through_a_link_in_a_files_place(
    store: DiskStore, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    write(store, KEYS[0])
    store.set_aside(KEYS[0])
    [spare] = files_of(store)
    spare.unlink()
    link(precious, spare)
    assert files_of(store) == [spare]
    write(store, KEYS[1])
    assert precious.read_bytes() == b"mine"
    assert read(store, KEYS[1]) == content(KEYS[1])


def test_a_copy_of_the_folder_by_hard_links_keeps_its_blocks(store: DiskStore, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    os.link(write(store, KEYS[0]), copy)
    before = copy.read_bytes()
    store.set_aside(KEYS[0])
    write(store, KEYS[1])
    assert copy.read_bytes() == before


def test_what_was_set_aside_is_gone_when_it_is_dropped_or_the_folder_is_left(store: DiskStore) -> None:
    for key in KEYS[:3]:
        write(store, key)
    for key in KEYS[:3]:
        store.set_aside(key)
    store.drop_spare()
    assert len(files_of(store)) == 2
    store.unlock()
    assert not files_of(store)
    store.drop_spare()


def test_a_start_removes_what_a_death_left_aside(store: DiskStore, tmp_path: Path) -> None:
    write(store, KEYS[0])
    store.set_aside(KEYS[0])
    assert DiskStore(tmp_path, SLAB, 4, "test").scan() == []
    assert not files_of(store)


def test_a_full_tier_writes_over_the_files_of_those_that_leave(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=2, disk=2, mode=WriteMode.WRITE_THROUGH, path=tmp_path))
    inodes = set()
    for number in range(1, 6):
        rig.request(keys_of([number, number]))
        rig.settle()
        files = [*tmp_path.rglob("*.kv")]
        assert len(files) == rig.cache.stats()[Tier.DISK].resident_blocks == 2
        assert not [*tmp_path.rglob("*.tmp")]
        inodes |= {path.stat().st_ino for path in files}
    assert len(inodes) == 2
    rig.cache.close()


@pytest.mark.parametrize("is_cleared", [True, False])
def test_no_file_is_kept_for_a_block_that_was_given_up_on_its_way(tmp_path: Path, is_cleared: bool) -> None:
    rig = make_rig(config(gpu=4, disk=8, path=tmp_path))
    for number in range(1, 4):
        rig.request(keys_of([number] * 4))
    assert len([*tmp_path.rglob("*.kv")]) == 8
    lease = rig.cache.acquire([], 4, {})  # what gpu holds is on its way to disk
    if is_cleared:
        rig.cache.clear(Tier.DISK)
    else:
        rig.resize(Tier.DISK, 0)
    rig.cache.poll()
    assert not [path.name for path in tmp_path.rglob("*.*") if path.is_file() and path.name != ".lock"]
    assert lease is not None
    rig.cache.release(lease)
    rig.settle()
    rig.cache.close()


def test_a_block_that_leaves_before_its_write_was_told_makes_room_before_the_next_is_written(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=2, cpu=2, disk=1, path=tmp_path, num_threads=2))
    for number in (1, 2):
        rig.request(keys_of([number, number]))
    assert rig.resident() == {Tier.GPU: 2, Tier.CPU: 2, Tier.DISK: 0}
    seen: list[str] = []
    for num_left in (1, 0):  # each sends one down, and nothing is polled
        rig.resize(Tier.CPU, num_left)
        deadline = time.monotonic() + 10
        while [path.name for path in tmp_path.rglob("*.kv")] in ([], seen) and time.monotonic() < deadline:
            time.sleep(0.001)
        seen = [path.name for path in tmp_path.rglob("*.kv")]
        assert len(seen) == 1
    rig.settle()
    assert [path.name for path in tmp_path.rglob("*.kv")] == seen
    assert rig.resident()[Tier.DISK] == 1
    rig.cache.close()
