"""What every store of blocks must do, be it a folder or a server. A module that runs it gives the fixture `place`.

`place.open(…)` is a store there, with the layout of the tests unless told otherwise; `place.stored(key)` are the bytes
that lie under a key now (None: nothing), and `place.replace(key, data)` puts others there.
"""

import time
from typing import Protocol

import pytest

from tests.tiers.rig import ROOT, SLAB, content, keys_of
from tiers import CorruptError, SlabSpec, block_format
from tiers.block_format import stored_bytes
from tiers.books.header import HEADER_BYTES, VERSION
from tiers.errors import GoneError
from tiers.store import BlockStore

KEYS = keys_of([1, 2, 3])
KEY, OTHER = KEYS[0], keys_of([7])[0]


class Place(Protocol):
    def open(self, fingerprint: str = "test", block_size: int = 4, slab: SlabSpec = SLAB) -> BlockStore: ...
    def stored(self, key: bytes) -> bytes | None: ...
    def replace(self, key: bytes, data: bytes) -> None: ...


def write(store: BlockStore, key: bytes = KEY, parent: bytes = ROOT, position: int = 0) -> None:
    store.write(key, parent, position, memoryview(content(key)))


def read(store: BlockStore, key: bytes = KEY) -> bytes:
    target = bytearray(SLAB.num_bytes)
    store.read(key, memoryview(target))
    return bytes(target)


class StoreContract:
    @pytest.fixture
    def store(self, place: Place) -> BlockStore:
        return place.open()

    def test_a_block_is_read_as_it_was_written_by_this_store_or_another(self, place: Place, store: BlockStore) -> None:
        write(store)
        assert read(store) == content(KEY)
        assert read(place.open()) == content(KEY)

    def test_a_block_takes_just_the_bytes_that_the_tier_counts(self, place: Place, store: BlockStore) -> None:
        write(store)
        assert len(place.stored(KEY) or b"") == stored_bytes(SLAB) == HEADER_BYTES + SLAB.num_bytes

    def test_a_flipped_bit_anywhere_is_noticed(self, place: Place, store: BlockStore) -> None:
        write(store)
        whole = place.stored(KEY)
        assert whole
        for position in range(0, len(whole), 7):
            damaged = bytearray(whole)
            damaged[position] ^= 4
            place.replace(KEY, bytes(damaged))
            with pytest.raises(CorruptError):
                read(store)
        place.replace(KEY, whole)
        assert read(store) == content(KEY)

    def test_less_or_more_than_the_block_is_noticed(self, place: Place, store: BlockStore) -> None:
        write(store)
        whole = place.stored(KEY)
        assert whole
        for num_bytes in range(len(whole)):
            place.replace(KEY, whole[:num_bytes])
            with pytest.raises(CorruptError):
                read(store)
        place.replace(KEY, whole + b"x")
        with pytest.raises(CorruptError):
            read(store)

    def test_another_block_under_this_key_is_noticed(self, place: Place, store: BlockStore) -> None:
        write(store)
        write(store, OTHER)
        place.replace(KEY, place.stored(OTHER) or b"")
        with pytest.raises(CorruptError, match="another block"):
            read(store)

    def test_what_is_not_there_is_said_to_be_gone(self, store: BlockStore) -> None:
        with pytest.raises(GoneError):
            read(store)
        write(store)
        store.remove(KEY)
        store.remove(KEY)
        with pytest.raises(GoneError):
            read(store)

    def test_another_models_blocks_are_neither_seen_nor_read_nor_removed(self, place: Place, store: BlockStore) -> None:
        write(store)
        others = [
            place.open(fingerprint="another model"),
            place.open(block_size=8),
            place.open(slab=SlabSpec(SLAB.num_bytes, "float32", (16,))),
            place.open(slab=SlabSpec(SLAB.num_bytes, "uint8", (8, 8))),
        ]
        for other in others:
            assert list(other.scan()) == []
            with pytest.raises(GoneError):
                read(other)
            other.remove(KEY)
        assert read(store) == content(KEY)

    def test_another_versions_block_is_not_read(
        self, place: Place, store: BlockStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as newer:
            newer.setattr(block_format, "VERSION", VERSION + 1)
            write(store)
        with pytest.raises(CorruptError, match="not a block of version"):
            read(store)

    def test_a_scan_tells_what_is_there_and_whose_child_it_is(self, place: Place, store: BlockStore) -> None:
        for position, key in reversed(list(enumerate(KEYS))):
            write(store, key, KEYS[position - 1] if position else ROOT, position)
            time.sleep(0.02)  # a folder's times are as coarse as the kernel's tick
        found = place.open().scan()
        assert sorted((entry.position, entry.key, entry.parent_key) for entry in found) == [
            (0, KEYS[0], ROOT),
            (1, KEYS[1], KEYS[0]),
            (2, KEYS[2], KEYS[1]),
        ]
        assert [entry.position for entry in found] == [2, 1, 0], "the one that was written first is the oldest"

    def test_a_scan_tells_whose_each_block_is(self, place: Place, store: BlockStore) -> None:
        store.write(KEY, ROOT, 0, memoryview(content(KEY)), "t" * 32)
        store.write(OTHER, ROOT, 0, memoryview(content(OTHER)))
        assert {entry.key: entry.tenant for entry in place.open().scan()} == {KEY: "t" * 32, OTHER: ""}

    def test_a_block_that_was_written_again_is_there_once(self, store: BlockStore) -> None:
        write(store)
        write(store)
        assert [entry.key for entry in store.scan()] == [KEY]
        assert read(store) == content(KEY)
