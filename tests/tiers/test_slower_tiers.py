"""The contracts of slower tiers, run for each of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tiers.contract import Only, QuotaContract, SlowerTierContract
from tests.tiers.rig import Rig, config, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import CacheConfig, Tier, WriteMode


def rigs(build: Callable[[WriteMode], CacheConfig]) -> Iterator[Only]:
    made: list[Rig] = []

    def only(mode: WriteMode) -> Rig:
        made.append(make_rig(build(mode)))
        return made[-1]

    yield only
    for rig in made:
        rig.cache.close()


class Cpu:
    tier = Tier.CPU

    @pytest.fixture
    def only(self) -> Iterator[Only]:
        yield from rigs(lambda mode: config(gpu=6, cpu=8, mode=mode))


class Disk:
    tier = Tier.DISK

    @pytest.fixture
    def only(self, tmp_path: Path) -> Iterator[Only]:
        yield from rigs(lambda mode: config(gpu=6, disk=8, path=tmp_path / mode, mode=mode))


class Remote:
    tier = Tier.REMOTE

    @pytest.fixture
    def only(self, kv_server: ValkeyServer) -> Iterator[Only]:
        yield from rigs(lambda mode: config(gpu=6, remote=8, url=kv_server.url, mode=mode, fingerprint=mode))


class TestCpu(Cpu, SlowerTierContract):
    pass


class TestDisk(Disk, SlowerTierContract):
    pass


class TestCpuQuota(Cpu, QuotaContract):
    pass


class TestDiskQuota(Disk, QuotaContract):
    pass


class TestRemote(Remote, SlowerTierContract):
    pass


class TestRemoteQuota(Remote, QuotaContract):
    pass
