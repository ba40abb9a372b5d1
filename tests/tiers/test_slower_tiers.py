"""The contract of slower tiers, run for each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiers.contract import Only, SlowerTierContract
from tests.tiers.rig import Rig, config, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import Tier, WriteMode


class TestCpu(SlowerTierContract):
    tier = Tier.CPU

    @pytest.fixture
    def only(self) -> Iterator[Only]:
        rigs: list[Rig] = []

        def build(mode: WriteMode) -> Rig:
            rigs.append(make_rig(config(gpu=6, cpu=8, mode=mode)))
            return rigs[-1]

        yield build
        for rig in rigs:
            rig.cache.close()


class TestRemote(SlowerTierContract):
    tier = Tier.REMOTE

    @pytest.fixture
    def only(self, kv_server: ValkeyServer) -> Iterator[Only]:
        rigs: list[Rig] = []

        def build(mode: WriteMode) -> Rig:
            rigs.append(make_rig(config(gpu=6, remote=8, url=kv_server.url, mode=mode, fingerprint=mode)))
            return rigs[-1]

        yield build
        for rig in rigs:
            rig.cache.close()


class TestDisk(SlowerTierContract):
    tier = Tier.DISK

    @pytest.fixture
    def only(self, tmp_path: Path) -> Iterator[Only]:
        rigs: list[Rig] = []

        def build(mode: WriteMode) -> Rig:
            rigs.append(make_rig(config(gpu=6, disk=8, path=tmp_path / mode, mode=mode)))
            return rigs[-1]

        yield build
        for rig in rigs:
            rig.cache.close()
