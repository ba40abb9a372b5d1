"""Files of whole pages, read from the page cache, past it, or in any way that the system offers."""

import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiers import CorruptError, SlabSpec, block_file
from tiers.disk import DiskStore

PAGES = 3
SLAB = SlabSpec(PAGES * mmap.PAGESIZE, "uint8", (PAGES, mmap.PAGESIZE))
KEY, ROOT = b"k" * 16, b"r" * 16
CONTENT = os.urandom(SLAB.num_bytes)


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    store = DiskStore(tmp_path, SLAB, 4, "test")
    store.write(KEY, ROOT, 0, memoryview(CONTENT))
    return store


@pytest.fixture
def flags_set(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What files were told to be read as."""
    flags: list[int] = []
    real: Callable[..., int] = fcntl.fcntl

    def noting(descriptor: int, command: int, argument: int = 0) -> int:
        flags.append(argument)
        return real(descriptor, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", noting)
    return flags


def forget(store: DiskStore) -> None:
    """The system no longer has the file in memory."""
    descriptor = os.open(store.path_of(KEY), os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def read(store: DiskStore, at: int = 0) -> bytes:
    """`at` is where the target begins in its page."""
    target = memoryview(mmap.mmap(-1, SLAB.num_bytes + mmap.PAGESIZE))[at : at + SLAB.num_bytes]
    store.read(KEY, target)
    return bytes(target)


def test_what_lies_in_the_page_cache_is_copied_from_there(store: DiskStore, flags_set: list[int]) -> None:
    assert read(store) == CONTENT
    assert flags_set == []


def test_what_does_not_is_read_past_it_and_stays_out_of_it(store: DiskStore, flags_set: list[int]) -> None:
    for _ in range(2):
        forget(store)
        assert read(store) == CONTENT
        assert flags_set[-1] in (os.O_DIRECT, 0)  # 0: this file system only reads through the cache
    with store.path_of(KEY).open("rb") as file:
        assert not block_file._is_cached(file.fileno(), SLAB.num_bytes) or flags_set[-1] == 0


@pytest.mark.parametrize("at", [1, 64, 512])
def test_memory_that_lies_across_pages_is_filled_too(store: DiskStore, at: int) -> None:
    forget(store)
    assert read(store, at) == CONTENT
    assert read(store, at) == CONTENT


def test_a_file_system_that_only_reads_through_the_cache_is_read_so(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, command: int, argument: int = 0) -> Any:
        if argument == os.O_DIRECT:
            raise OSError("not here")
        return 0

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    forget(store)
    assert read(store) == CONTENT


def test_a_system_that_does_not_tell_what_is_cached_is_read_through_the_cache(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, flags_set: list[int]
) -> None:
    monkeypatch.setattr(block_file, "_SYS_CACHESTAT", 100_000)
    forget(store)
    assert read(store) == CONTENT
    assert flags_set == []


def test_a_flipped_bit_in_any_page_is_noticed_past_the_cache(store: DiskStore) -> None:
    path = store.path_of(KEY)
    whole = path.read_bytes()
    for position in range(100, len(whole), mmap.PAGESIZE):
        damaged = bytearray(whole)
        damaged[position] ^= 8
        path.write_bytes(damaged)
        forget(store)
        with pytest.raises(CorruptError):
            read(store)


@pytest.mark.parametrize("num_bytes", [0, 1, mmap.PAGESIZE, SLAB.num_bytes, SLAB.num_bytes + 1, 2 * SLAB.num_bytes])
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_file_that_is_shorter_or_longer_than_a_block_is_none(
    store: DiskStore, num_bytes: int, is_cached: bool
) -> None:
    store.path_of(KEY).write_bytes((store.path_of(KEY).read_bytes() * 2)[:num_bytes])
    if not is_cached:
        forget(store)
    with pytest.raises(CorruptError):
        read(store)
