"""Turns "this block from here to there" into operations, and sends them off in an order that is safe.

Near lane: copies out of gpu slots and files to be passed on, then copies into gpu slots. Far lane: files removed, then
written, so that the folder never outgrows its budget. A server has lanes of its own. Knows nothing about tiers' books.
"""

from functools import partial

from tiers.disk import DiskStore
from tiers.errors import CorruptError
from tiers.host import Host, HostSlot
from tiers.names import Tier
from tiers.node import Copy, Node
from tiers.pool import BlockPool, copy_bytes
from tiers.remote_movers import Absent, RemoteMovers
from tiers.transfers import Done, Operation, Transfers


class Movers:
    """Operations are collected until `submit`."""

    def __init__(
        self,
        pool: BlockPool,
        host: Host,
        disk: DiskStore | None,
        transfers: Transfers,
        remote: RemoteMovers | Absent,
    ) -> None:
        self._pool = pool
        self._host = host
        self._disk = disk
        self._remote = remote
        self._transfers = transfers
        self._drains: list[Operation] = []
        self._loads: list[Operation] = []
        self._deletes: list[Operation] = []
        self._writes: list[Operation] = []

    def drain(self, copy: Copy, host: HostSlot, done: Done) -> None:
        """Gpu slot, or the block's file, to host slot."""
        run = partial(self._lift, copy.node.key, host) if copy.level.rank else partial(self._drain, copy.slot, host)
        self._drains.append(Operation(run, done))

    def load(self, copy: Copy, tier: Tier, host: HostSlot | None, done: Done) -> None:
        """Host slot, or what lies in the tier, to the copy's gpu slot."""
        if host is not None:
            fill = partial(self._fill, host)
        elif tier is Tier.REMOTE:
            self._remote.fetch(copy.node.key, copy.slot, done)
            return
        else:
            assert self._disk is not None
            fill = partial(self._disk.read, copy.node.key)
        self._loads.append(Operation(partial(self._pool.load, copy.slot, fill), done))

    def accepts(self, tier: Tier, num_arriving: int) -> bool:
        """Whether one more block may be sent there now."""
        return tier is not Tier.REMOTE or self._remote.accepts(num_arriving)

    def write(self, copy: Copy, host: HostSlot, done: Done) -> None:
        """Host slot to the copy's tier; skipped if the block has left the tier by the time it would begin."""
        if copy.level.tier is Tier.REMOTE:
            self._remote.send(copy, self._host.pool.read(host.slot), done)
            return
        self._writes.append(Operation(partial(self._write, copy, copy.node, host), done))

    def delete(self, tier: Tier, key: bytes) -> None:
        if tier is Tier.REMOTE:
            self._remote.delete(key)
            return
        assert self._disk is not None
        self._deletes.append(Operation(partial(self._disk.remove, key), lambda error, seconds: None))

    def submit(self) -> None:
        if near := self._drains + self._loads:
            self._drains, self._loads = [], []
            self._pool.fence()
            self._transfers.submit_near(near)
        if far := self._deletes + self._writes:
            self._deletes, self._writes = [], []
            self._transfers.submit_far(far)
        self._remote.submit()

    def _drain(self, slot: int, host: HostSlot) -> None:
        self._pool.store(slot, self._host.pool.read(host.slot))
        host.has_bytes = True

    def _lift(self, key: bytes, host: HostSlot) -> None:
        assert self._disk is not None
        self._disk.read(key, self._host.pool.read(host.slot))
        host.has_bytes = True

    def _fill(self, host: HostSlot, target: memoryview) -> None:
        if not host.has_bytes:
            raise CorruptError("the block never came to host memory")
        copy_bytes(self._host.pool.read(host.slot), target)

    def _write(self, copy: Copy, node: Node, host: HostSlot) -> None:
        if copy.is_live and self._disk is not None:
            self._disk.write(node.key, node.parent_key, node.depth, self._host.pool.read(host.slot))
