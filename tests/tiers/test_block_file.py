"""Files of whole pages, read from the page cache, past it, or in any way that the system offers."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from tiers import CorruptError, SlabSpec, block_file
from tiers.disk import DiskStore
from tiers.errors import GoneError

PAGES = 3
SLAB = SlabSpec(PAGES * mmap.PAGESIZE, "uint8", (PAGES, mmap.PAGESIZE))
KEY, ROOT = b"k" * 16, b"r" * 16
CONTENT = os.urandom(SLAB.num_bytes)


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    store = DiskStore(tmp_path, SLAB, 4, "test")
    store.write(KEY, ROOT, 0, memoryview(CONTENT))
    return store


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


def num_cached_pages(store: DiskStore) -> int:
    libc = ctypes.CDLL(None)
    with store.path_of(KEY).open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        anchor = ctypes.c_char.from_buffer(data)
        told = (ctypes.c_ubyte * (PAGES + 1))()
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(len(data)), told)
        del anchor
        assert not failed
        return sum(page & 1 for page in told)


def test_what_lies_in_the_page_cache_is_copied_from_there(store: DiskStore) -> None:
    assert num_cached_pages(store) == PAGES + 1
    assert read(store) == CONTENT


def test_what_does_not_is_read_past_it_and_stays_out_of_it(store: DiskStore) -> None:
    for _ in range(2):
        forget(store)
        if num_cached_pages(store):
            pytest.skip("this file system only reads through the cache")
        assert read(store) == CONTENT
        assert num_cached_pages(store) == 0


@pytest.mark.parametrize("at", [1, 64, 512])
def test_memory_that_lies_across_pages_is_filled_too(store: DiskStore, at: int) -> None:
    forget(store)
    assert read(store, at) == CONTENT
    assert read(store, at) == CONTENT


def test_where_the_cache_cannot_be_passed_by_it_is_read_through(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_file, "ALIGNMENT", 1)  # the system refuses memory that lies across pages
    forget(store)
    assert read(store, at=1) == CONTENT


def test_a_system_that_does_not_tell_what_is_cached_is_read_through_the_cache(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_file, "CACHESTAT", 100_000)
    forget(store)
    assert read(store) == CONTENT
    assert num_cached_pages(store) == PAGES + 1


def test_a_file_that_may_not_be_read_is_an_error_that_says_so(store: DiskStore) -> None:
    store.path_of(KEY).unlink()
    store.path_of(KEY).mkdir()
    with pytest.raises(OSError, match="could not be read"):
        read(store)


def test_of_many_files_each_has_its_own_error(store: DiskStore) -> None:
    keys = [bytes([number]) * 16 for number in range(2 * block_file.MAX_FILES + 1)]
    for key in keys:
        store.write(key, ROOT, 0, memoryview(CONTENT))
    store.remove(keys[3])
    store.path_of(keys[20]).write_bytes(b"short")
    pool = memoryview(mmap.mmap(-1, len(keys) * SLAB.num_bytes))
    targets = [pool[index * SLAB.num_bytes :][: SLAB.num_bytes] for index in range(len(keys))]
    errors = store.read_many(keys, targets)
    assert {index: type(error) for index, error in errors.items()} == {3: GoneError, 20: CorruptError}
    assert all(target == CONTENT for index, target in enumerate(targets) if index not in errors)


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
