"""Files of the disk tier: written whole or not at all, verified when read, found again after a restart."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tiers.rig import ROOT, SLAB, config, content, keys_of, make_rig
from tiers import CorruptError, RefusedError, SlabSpec, Tier, WriteMode
from tiers.block_format import stored_bytes
from tiers.books.header import HEADER_BYTES
from tiers.disk import DiskStore

A, B = [1, 1, 1, 1], [2, 2, 2, 2]
KEY = keys_of(A)[0]


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path, SLAB, 4, "test")


def write(store: DiskStore, key: bytes = KEY, position: int = 0) -> Path:
    store.write(key, ROOT, position, memoryview(content(key)))
    return store.path_of(key)


def read(store: DiskStore, key: bytes = KEY) -> bytes:
    target = bytearray(SLAB.num_bytes)
    store.read(key, memoryview(target))
    return bytes(target)


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """The system takes only so many bytes of a file, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_block_is_read_as_it_was_written_by_this_process_or_the_next(store: DiskStore, tmp_path: Path) -> None:
    write(store)
    assert read(store) == content(KEY)
    assert read(DiskStore(tmp_path, SLAB, 4, "test")) == content(KEY)


def test_files_are_for_their_owner_only(store: DiskStore) -> None:
    path = write(store)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_file_takes_just_the_bytes_that_the_tier_counts(store: DiskStore) -> None:
    assert write(store).stat().st_size == stored_bytes(SLAB) == HEADER_BYTES + SLAB.num_bytes


def test_any_flipped_bit_is_noticed(store: DiskStore) -> None:
    path = write(store)
    whole = path.read_bytes()
    for position in range(8 * len(whole)):
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(data)
        with pytest.raises(CorruptError):
            read(store)


def test_a_file_torn_anywhere_is_noticed_and_removed_at_the_next_start(store: DiskStore) -> None:
    whole = write(store).read_bytes()
    for num_bytes in range(len(whole)):
        path = store.path_of(KEY)
        path.write_bytes(whole[:num_bytes])
        with pytest.raises(CorruptError):
            read(store)
        assert store.scan() == []
        assert not path.exists()


def test_a_longer_file_is_not_a_block(store: DiskStore) -> None:
    path = write(store)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(CorruptError):
        read(store)


def test_another_blocks_file_under_this_name_is_noticed(store: DiskStore) -> None:
    other = keys_of(B)[0]
    path = write(store)
    write(store, other).replace(path)
    with pytest.raises(CorruptError, match="another block"):
        read(store)
    assert store.scan() == []


def test_a_file_that_is_gone_is_a_miss(store: DiskStore) -> None:
    write(store).unlink()
    with pytest.raises(CorruptError, match="gone"):
        read(store)


def test_leftovers_and_strangers_are_removed_at_start(store: DiskStore) -> None:
    path = write(store)
    leftover, stranger, link = (path.with_name(name) for name in ("x.tmp", "notes.txt", "0" * 32 + ".kv"))
    leftover.write_bytes(b"half")
    stranger.write_bytes(b"hello")
    link.symlink_to(path)
    assert [header.key for header in store.scan()] == [KEY]
    assert not leftover.exists()
    assert not stranger.exists()
    assert not link.is_symlink()
    assert path.exists()


def test_another_models_blocks_are_neither_seen_nor_removed(store: DiskStore, tmp_path: Path) -> None:
    path = write(store)
    others = [
        DiskStore(tmp_path, SLAB, 4, "another model"),
        DiskStore(tmp_path, SLAB, 8, "test"),
        DiskStore(tmp_path, SlabSpec(SLAB.num_bytes, "float32", (16,)), 4, "test"),
    ]
    assert [other.scan() for other in others] == [[], [], []]
    assert path.exists()


def test_a_full_disk_leaves_no_file_behind(store: DiskStore) -> None:
    with largest_file(HEADER_BYTES + 10), pytest.raises(OSError, match="too large"):
        write(store)
    assert not list(store.folder.rglob("*.*"))


def test_a_process_that_dies_while_it_writes_leaves_whole_blocks_only(tmp_path: Path) -> None:
    """Killed at random moments of an endless row of writes; the next start finds valid blocks and nothing else."""
    code = (
        "import sys, itertools\n"
        "from pathlib import Path; from tiers import SlabSpec; from tiers.disk import DiskStore\n"
        "store = DiskStore(Path(sys.argv[1]), SlabSpec(1 << 20, 'uint8', (1 << 20,)), 4, 'x'); print(flush=True)\n"
        "for n in itertools.count():\n"
        "    store.write((n % 5).to_bytes(16, 'big'), b'r' * 16, 0, memoryview(bytes([n % 251]) * (1 << 20)))\n"
    )
    slab = SlabSpec(1 << 20, "uint8", (1 << 20,))
    for attempt in range(4):
        writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05 + attempt * 0.013)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        store = DiskStore(tmp_path, slab, 4, "x")
        for header in store.scan():
            store.read(header.key, memoryview(bytearray(1 << 20)))
        assert not list(store.folder.rglob("*.tmp"))


def test_a_start_does_not_wait_for_a_pipe_in_a_blocks_place(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, SLAB, 4, "test")
    place = store.path_of(b"k" * 16)
    place.parent.mkdir()
    os.mkfifo(place)
    found: list[object] = []
    start = threading.Thread(target=lambda: found.append(store.scan()), daemon=True)
    start.start()
    start.join(10)
    assert found == [[]]
    assert not place.exists()


# -- the tier as a whole -----------------------------------------------------------------------------------------------
def test_a_process_killed_at_any_system_call_of_a_write_leaves_whole_blocks_only(tmp_path: Path) -> None:
    program = Path(__file__).with_name("crash_at_every_step.py")
    ended = subprocess.run(
        [sys.executable, program, tmp_path],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= 10, "too few system calls were met"


def test_a_restarted_cache_finds_what_was_written(tmp_path: Path) -> None:
    settings = config(gpu=4, disk=16, path=tmp_path)
    first = make_rig(settings)
    first.request(keys_of(A))
    first.request(keys_of(B))
    first.cache.close()
    second = make_rig(settings)
    assert second.resident()[Tier.DISK] == 4
    assert second.request(keys_of(A)) == [Tier.DISK] * 3


def test_a_clean_stop_writes_gpu_and_cpu_down_and_keeps_the_order_of_use(tmp_path: Path) -> None:
    first = make_rig(config(gpu=4, cpu=4, disk=12, path=tmp_path))
    for words in (A, B, [3, 3, 3, 3]):
        first.request(keys_of(words))
    first.cache.flush(time.monotonic() + 10)
    first.cache.close()
    second = make_rig(config(gpu=4, disk=12, path=tmp_path))
    assert second.resident()[Tier.DISK] == 12
    second.request(keys_of([4] * 4))
    second.request(keys_of([5] * 4))  # four blocks came down to disk, so its oldest four had to go
    assert second.cache.match(keys_of(A)) == []
    assert second.cache.match(keys_of(B)) == [Tier.DISK] * 4


def test_a_folder_serves_one_engine_at_a_time(tmp_path: Path) -> None:
    first = make_rig(config(gpu=4, disk=16, path=tmp_path))
    with pytest.raises(RefusedError, match="in use by another engine"):
        make_rig(config(gpu=4, disk=16, path=tmp_path))
    first.cache.close()
    make_rig(config(gpu=4, disk=16, path=tmp_path)).cache.close()


def test_a_flush_without_time_writes_nothing(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, disk=12, path=tmp_path))
    rig.request(keys_of(A))
    rig.cache.flush(time.monotonic())
    rig.cache.close()
    assert not list(tmp_path.rglob("*.kv"))


def test_a_smaller_disk_tier_after_a_restart_keeps_the_newest_and_removes_files(tmp_path: Path) -> None:
    first = make_rig(config(gpu=4, disk=16, path=tmp_path))
    for words in (A, B, [3] * 4):
        first.request(keys_of(words))
    first.cache.close()
    second = make_rig(config(gpu=4, disk=4, path=tmp_path))
    second.settle()
    assert second.cache.match(keys_of(A)) == []
    assert second.cache.match(keys_of(B)) == [Tier.DISK] * 4
    assert len(list(tmp_path.rglob("*.kv"))) == 4


def test_blocks_whose_parents_are_gone_are_found_again_once_those_are_computed(tmp_path: Path) -> None:
    first = make_rig(config(gpu=4, disk=16, path=tmp_path))
    first.request(keys_of(A))
    first.request(keys_of(B))
    first.cache.close()
    DiskStore(tmp_path, SLAB, 4, "test").remove(keys_of(A)[0])
    second = make_rig(config(gpu=4, disk=16, path=tmp_path))
    assert second.cache.match(keys_of(A)) == []
    assert second.cache.num_orphans == 1
    second.request(keys_of(A)[:1])
    assert second.cache.match(keys_of(A)) == [Tier.GPU] + [Tier.DISK] * 3
    assert second.cache.num_orphans == 0


def test_a_corrupt_block_fails_the_lease_and_is_a_miss_from_then_on(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=4, disk=16, path=tmp_path))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    path = DiskStore(tmp_path, SLAB, 4, "test").path_of(keys_of(A)[1])
    path.write_bytes(b"?" * path.stat().st_size)
    origins: dict[bytes, Tier] = {}
    lease = rig.cache.acquire(keys_of(A), 4, origins)
    assert lease is not None
    rig.settle()
    assert lease.state == "failed"
    assert keys_of(A)[1] not in origins
    rig.cache.release(lease)
    rig.settle()
    assert not path.exists()
    stats = rig.cache.stats()[Tier.DISK]
    assert (stats.errors["load"], stats.evicted_blocks["corrupt"]) == (1, 1)
    again = rig.cache.acquire(keys_of(A), 4, origins)
    assert again is not None
    assert again.hit_tiers == [Tier.DISK]  # its origin, though the first try has brought it to gpu


@pytest.mark.parametrize("mode", [WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH])
def test_a_full_disk_costs_blocks_but_no_request(tmp_path: Path, mode: WriteMode) -> None:
    rig = make_rig(config(gpu=4, disk=16, path=tmp_path, mode=mode))
    with largest_file(HEADER_BYTES + 10):
        rig.request(keys_of(A))
        rig.request(keys_of(B))
    stats = rig.cache.stats()[Tier.DISK]
    assert stats.resident_blocks == stats.stored_blocks == 0
    assert stats.errors["store"] >= 4
    assert not list(tmp_path.rglob("*.kv"))
    rig.request(keys_of(A))
    rig.request(keys_of(B))
    assert rig.resident()[Tier.DISK] >= 4
