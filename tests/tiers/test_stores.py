"""The contract of stores, run for a folder and for a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiers.rig import SLAB
from tests.tiers.store_contract import Place, StoreContract
from tests.tiers.valkey import ValkeyServer
from tiers import SlabSpec
from tiers.disk import DiskStore
from tiers.remote import RemoteStore


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, fingerprint: str = "test", block_size: int = 4, slab: SlabSpec = SLAB) -> DiskStore:
        return DiskStore(self.path, slab, block_size, fingerprint)

    def stored(self, key: bytes) -> bytes | None:
        path = self.open().path_of(key)
        return path.read_bytes() if path.exists() else None

    def replace(self, key: bytes, data: bytes) -> None:
        self.open().path_of(key).write_bytes(data)


class Server:
    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.stores: list[RemoteStore] = []

    def open(self, fingerprint: str = "test", block_size: int = 4, slab: SlabSpec = SLAB) -> RemoteStore:
        self.stores.append(RemoteStore(self.server.url, slab, block_size, fingerprint))
        return self.stores[-1]

    def stored(self, key: bytes) -> bytes | None:
        data = self.server.client.get(self.open().prefix + b"b:" + key)
        assert data is None or isinstance(data, bytes)
        return data

    def replace(self, key: bytes, data: bytes) -> None:
        self.server.client.set(self.open().prefix + b"b:" + key, data)


class TestDisk(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Folder(tmp_path)


class TestRemote(StoreContract):
    @pytest.fixture
    def place(self, kv_server: ValkeyServer) -> Iterator[Place]:
        server = Server(kv_server)
        yield server
        for store in server.stores:
            store.close()
