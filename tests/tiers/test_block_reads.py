"""Files of whole pages, read from the page cache, past it, or in any way that the system offers."""

import ctypes
import mmap
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

from tiers import CorruptError, MemoryPool, SlabSpec, block_reads
from tiers.disk import DiskStore
from tiers.errors import GoneError
from tiers.read_turns import PIECE_BYTES

PAGES = 3
SLAB = SlabSpec(PAGES * mmap.PAGESIZE, "uint8", (PAGES, mmap.PAGESIZE))
KEY, ROOT = b"k" * 16, b"r" * 16
CONTENT = os.urandom(SLAB.num_bytes)


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return new_store(tmp_path)


def new_store(folder: Path) -> DiskStore:
    store = DiskStore(folder, SLAB, 4, "test")
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_reads, "ALIGNMENT", 1)  # the system refuses memory that lies across pages
    store = new_store(tmp_path)
    forget(store)
    assert read(store, at=1) == CONTENT


def test_a_system_that_does_not_tell_what_is_cached_is_read_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_reads, "CACHESTAT", 100_000)
    store = new_store(tmp_path)
    forget(store)
    assert read(store) == CONTENT
    assert num_cached_pages(store) == PAGES + 1


def test_a_file_that_may_not_be_read_is_an_error_that_says_so(store: DiskStore) -> None:
    store.path_of(KEY).unlink()
    store.path_of(KEY).mkdir()
    with pytest.raises(IsADirectoryError, match="could not be read: Is a directory"):
        read(store)


def test_a_pipe_in_a_files_place_is_not_waited_for(store: DiskStore) -> None:
    store.path_of(KEY).unlink()
    os.mkfifo(store.path_of(KEY))
    reads = store.reads([KEY])
    reader = threading.Thread(target=reads.into(MemoryPool(SLAB, 1), [0]), daemon=True)
    reader.start()
    reader.join(10)
    assert str(reads.errors[0]) == "[Errno 29] the file could not be read: Illegal seek"


def test_where_no_file_can_be_opened_any_more_the_error_says_so(store: DiskStore) -> None:
    assert read(store) == CONTENT  # what is compiled was opened before
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            read(store)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def many(store: DiskStore, num_files: int) -> list[bytes]:
    """Keys of files, each with its own content."""
    keys = [os.urandom(16) for _ in range(num_files)]
    for key in keys:
        store.write(key, ROOT, 0, memoryview(key * (SLAB.num_bytes // 16)))
    return keys


def test_threads_that_read_the_same_files_share_them_and_each_has_its_own_error(store: DiskStore) -> None:
    keys = many(store, 40)
    store.remove(keys[3])
    store.path_of(keys[20]).write_bytes(b"short")
    pool, reads, slots = MemoryPool(SLAB, 40), store.reads(keys), [*range(39, -1, -1)]
    in_threads(4, reads.into(pool, slots))
    assert {index: type(error) for index, error in reads.errors.items()} == {3: GoneError, 20: CorruptError}
    for key, slot in zip(keys, slots, strict=True):
        if key not in (keys[3], keys[20]):
            assert pool.read(slot) == key * (SLAB.num_bytes // 16)


def test_threads_that_have_one_place_each_are_told_what_is_in_it(store: DiskStore) -> None:
    keys = many(store, 40)
    store.remove(keys[7])
    reads, seen = store.reads(keys), SimpleQueue[tuple[int, bytes]]()

    def each() -> None:
        place = memoryview(bytearray(SLAB.num_bytes))
        for index in reads.each(lambda _: place):
            seen.put((index, bytes(place[-16:])))

    in_threads(4, each)
    assert sorted(seen.get() for _ in range(seen.qsize())) == [(n, key) for n, key in enumerate(keys) if n != 7]
    assert [*reads.errors] == [7]


def test_what_no_thread_has_read_is_an_error(store: DiskStore) -> None:
    assert isinstance(store.reads([KEY]).errors[0], OSError)


def in_threads(num_threads: int, run: Callable[[], None]) -> None:
    threads = [threading.Thread(target=run) for _ in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


@pytest.mark.parametrize("num_payload", [2 * PIECE_BYTES, 2 * PIECE_BYTES + 4096, 2 * PIECE_BYTES - 100, PIECE_BYTES])
def test_a_block_of_several_pieces_is_whole_or_an_error(tmp_path: Path, num_payload: int) -> None:
    """Pieces are what the page cache is read in."""
    slab, content = SlabSpec(num_payload, "uint8", (num_payload,)), os.urandom(num_payload)
    store = DiskStore(tmp_path, slab, 4, "test")
    store.write(KEY, ROOT, 0, memoryview(content))
    path, target = store.path_of(KEY), memoryview(bytearray(num_payload))
    store.read(KEY, target)
    assert target == content
    whole = path.read_bytes()
    for length in (0, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, num_payload, num_payload + 1, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptError):
            store.read(KEY, target)
    for position in range(0, len(whole), PIECE_BYTES // 3):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(CorruptError):
            store.read(KEY, target)
