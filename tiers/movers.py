"""Turns "this block from here to there" into operations, and sends them off in an order that is safe.

Near lane: copies out of gpu slots, then into them. Far lane: files removed, then written, so that the folder never
outgrows its budget. Knows nothing about tiers' books.
"""

from collections.abc import Callable
from functools import partial

from tiers.disk import DiskStore
from tiers.errors import CorruptError
from tiers.host import Host, HostSlot
from tiers.node import Copy, Node
from tiers.pool import BlockPool, copy_bytes
from tiers.transfers import Operation, Transfers

Done = Callable[[Exception | None, float], None]


class Movers:
    """Operations are collected until `submit`."""

    def __init__(self, pool: BlockPool, host: Host, disk: DiskStore | None, transfers: Transfers) -> None:
        self._pool = pool
        self._host = host
        self._disk = disk
        self._transfers = transfers
        self._drains: list[Operation] = []
        self._loads: list[Operation] = []
        self._deletes: list[Operation] = []
        self._writes: list[Operation] = []

    def drain(self, slot: int, host: HostSlot, done: Done) -> None:
        """Gpu slot to host slot."""
        self._drains.append(Operation(partial(self._drain, slot, host), done))

    def load(self, copy: Copy, host: HostSlot | None, done: Done) -> None:
        """Host slot, or the block's file, to the copy's gpu slot."""
        if host is not None:
            fill = partial(self._fill, host)
        else:
            assert self._disk is not None
            fill = partial(self._disk.read, copy.node.key)
        self._loads.append(Operation(partial(self._pool.load, copy.slot, fill), done))

    def write(self, copy: Copy, host: HostSlot, done: Done) -> None:
        """Host slot to the block's file; skipped if the block has left the tier by the time it would begin."""
        self._writes.append(Operation(partial(self._write, copy, copy.node, host), done))

    def delete(self, key: bytes) -> None:
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

    def _drain(self, slot: int, host: HostSlot) -> None:
        self._pool.store(slot, self._host.pool.read(host.slot))
        host.has_bytes = True

    def _fill(self, host: HostSlot, target: memoryview) -> None:
        if not host.has_bytes:
            raise CorruptError("the block never came to host memory")
        copy_bytes(self._host.pool.read(host.slot), target)

    def _write(self, copy: Copy, node: Node, host: HostSlot) -> None:
        if copy.is_live and self._disk is not None:
            self._disk.write(node.key, node.parent_key, node.depth, self._host.pool.read(host.slot))
