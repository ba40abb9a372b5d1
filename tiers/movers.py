"""Turns "this block from here to there" into operations, and sends them off in an order that is safe.

Near lane: copies out of gpu slots and files to be passed on, then copies into gpu slots from host memory, many blocks
an operation. Files are read into gpu slots as soon as those have been emptied; they are removed before others are
written, so that the folder never outgrows its budget but for files that are still being read. A server has lanes of
its own. Knows nothing about tiers' books.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tiers.disk import DiskStore
from tiers.errors import CorruptError
from tiers.host import Host, HostSlot
from tiers.keys import BlockKey
from tiers.landing import Landing
from tiers.lanes import Done, Operation, nobody_asks
from tiers.loads import Loaded, Loads, tell
from tiers.names import Tier
from tiers.node import Copy, Node
from tiers.pool import BlockPool
from tiers.remote_movers import Absent, RemoteMovers
from tiers.spares import Spares
from tiers.transfers import Transfers

# An operation's copies take a millisecond or two: a stop waits for the one that runs.
GROUP_BYTES = 8 << 20
# Of files, which all readers take turns at.
READ_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Move:
    """Between a gpu slot and a host slot."""

    slot: int
    host: HostSlot
    done: Done


class Movers:
    """Operations are collected until `submit`."""

    def __init__(
        self,
        pool: BlockPool,
        host: Host,
        disk: DiskStore | None,
        transfers: Transfers,
        remote: RemoteMovers | Absent,
        slab_bytes: int,
    ) -> None:
        self._pool = pool
        self._host = host
        self._disk = disk
        self._remote = remote
        self._transfers = transfers
        self._landing = Landing(pool, slab_bytes)
        self._slab_bytes = slab_bytes
        self._group = max(1, GROUP_BYTES // slab_bytes)
        self._drains: list[_Move] = []
        self._lifts: list[Operation] = []
        self._loads: list[Operation] = []
        self._reads: list[Operation] = []
        self._leaving: list[BlockKey] = []
        self._spares = Spares()
        self._writes: list[Operation] = []

    def drain(self, copy: Copy, host: HostSlot, done: Done) -> None:
        """Gpu slot, or the block's file, to host slot."""
        if copy.level.rank:
            self._lifts.append(Operation(partial(self._lift, copy.node.key, host), done))
        else:
            self._drains.append(_Move(copy.slot, host, done))

    def load(self, loads: Loads, done: Loaded) -> None:
        """Host slots, or what lies in the tier, to gpu slots."""
        if loads.hosts:
            self._loads += self._operations(self._fill, loads, self._group, done)
        elif loads.level.tier is Tier.REMOTE:
            self._remote.fetch(loads, done)
        else:
            size = max(1, READ_BYTES // self._slab_bytes)
            for start in range(0, len(loads), size):
                self._reads.append(self._reading(loads.part(start, start + size), done))

    def refusal(self, tier: Tier, num_arriving: int) -> str:
        """Why no more blocks may be sent there now; "" where they may."""
        return self._remote.refusal(num_arriving) if tier is Tier.REMOTE else ""

    def write(self, copy: Copy, host: HostSlot, done: Done) -> None:
        """Host slot to the copy's tier; skipped if the block has left the tier by the time it would begin."""
        if copy.level.tier is Tier.REMOTE:
            self._remote.send(copy, self._host.pool.read(host.slot), done)
            return
        write = partial(self._write, copy, copy.node, copy.node.tenant_name, host)
        self._writes.append(Operation(write, partial(self._written, done)))

    def _written(self, done: Done, error: Exception | None, seconds: float) -> None:
        self._spares.written()
        done(error, seconds)

    def delete(self, tier: Tier, key: BlockKey) -> None:
        if tier is Tier.REMOTE:
            self._remote.delete(key)
        else:
            self._leaving.append(key)

    def submit(self, num_coming: int) -> None:
        """What is read into slots waits for the copies out of them: those go first, and what takes longest next.

        `num_coming` are the blocks on their way to disk, from here or after a copy that is to come.
        """
        if not self._has_any:
            self._remote.submit()
            return
        drains, reads, lifts, loads = self._drains, self._reads, self._lifts, self._loads
        self._drains, self._reads, self._lifts, self._loads = [], [], [], []
        if drains or reads or loads:
            self._pool.fence()
        self._transfers.submit_near(self._drainage(drains))
        self._transfers.submit_read(reads)
        self._remote.submit()
        self._transfers.submit_near(lifts + loads)
        self._transfers.submit_write(self._writing(num_coming))

    @property
    def _has_any(self) -> bool:
        """Most steps move nothing."""
        is_moving = self._drains or self._reads or self._lifts or self._loads or self._leaving or self._writes
        return bool(is_moving or self._spares.num_kept)

    def _writing(self, num_coming: int) -> list[Operation]:
        """Files that leave, whose place others get, before those that are written."""
        leaving, writes = self._leaving, self._writes
        self._leaving, self._writes = [], []
        num_aside, num_dropped = self._spares.submit(len(leaving), len(writes), num_coming)
        if not leaving and not num_dropped:
            return writes
        disk = self._disk
        assert disk is not None
        removals = [partial(disk.set_aside, key) for key in leaving[:num_aside]]
        removals += [partial(disk.remove, key) for key in leaving[num_aside:]]
        drops = [Operation(disk.drop_spare, nobody_asks) for _ in range(num_dropped)]
        return [*(Operation(removal, nobody_asks) for removal in removals), *writes, *drops]

    def _drainage(self, moves: Sequence[_Move]) -> list[Operation]:
        groups = (moves[start : start + self._group] for start in range(0, len(moves), self._group))
        return [Operation(partial(self._drain, group), partial(_moved, group)) for group in groups]

    def _operations(self, run: Callable[[Loads], None], loads: Loads, size: int, done: Loaded) -> list[Operation]:
        groups = (loads.part(start, start + size) for start in range(0, len(loads), size))
        return [Operation(partial(run, group), partial(tell, group, done)) for group in groups]

    def _reading(self, loads: Loads, done: Loaded) -> Operation:
        assert self._disk is not None
        files = self._disk.reads(loads.keys)

        def told(error: Exception | None, seconds: float) -> None:
            loads.errors |= files.errors
            tell(loads, done, error, seconds)

        return Operation(self._landing.reading(files, loads.slots), told, is_shared=True)

    # -- on transfer threads -----------------------------------------------------------------------------------------
    def _drain(self, moves: Sequence[_Move]) -> None:
        self._pool.store_many([(move.slot, move.host.slot) for move in moves], self._host.pool)
        for move in moves:
            move.host.has_bytes = True

    def _fill(self, loads: Loads) -> None:
        pairs = []
        for index, (host, slot) in enumerate(zip(loads.hosts, loads.slots, strict=True)):
            if host.has_bytes:
                pairs.append((host.slot, slot))
            else:
                loads.errors[index] = CorruptError("the block never came to host memory")
        self._pool.load_many(pairs, self._host.pool)

    def _lift(self, key: bytes, host: HostSlot) -> None:
        assert self._disk is not None
        self._disk.read(key, self._host.pool.read(host.slot))
        host.has_bytes = True

    def _write(self, copy: Copy, node: Node, tenant: str, host: HostSlot) -> None:
        assert self._disk is not None
        if copy.is_live:
            self._disk.write(node.key, node.parent_key, node.depth, self._host.pool.read(host.slot), tenant)
        else:
            self._disk.drop_spare()


def _moved(moves: Sequence[_Move], error: Exception | None, seconds: float) -> None:
    for move in moves:
        move.done(error, seconds / len(moves))
