"""The way up: blocks that were hit in slower tiers come to gpu, many in one operation.

Books what has come and tells the leases that wait. Knows nothing about leases' lengths or whose slots are taken.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books.books import Books
from tiers.books.compiled import Ints32, Ints64
from tiers.books.loads import end, place
from tiers.errors import GoneError, UnreachableError
from tiers.host import Host
from tiers.keys import BlockKey
from tiers.ladder import Ladder
from tiers.late import Late
from tiers.lease import Lease
from tiers.level import Level
from tiers.loads import Loads
from tiers.movers import Movers
from tiers.node import Copy, copies


class Ascent:
    """Operations are sent off by `Ladder.submit`. `late` are blocks that came for requests which have ended."""

    def __init__(self, books: Books, ladder: Ladder, host: Host, movers: Movers) -> None:
        self.late = Late(books)
        self._books = books
        self._ladder = ladder
        self._host = host
        self._movers = movers

    def promote(self, lease: Lease, keys: Sequence[BlockKey], loaded: Ints32, sources: Ints32, slots: Ints64) -> None:
        """Load the blocks into the slots; the copies out of those slots, if any, were asked for before."""
        ranks = np.empty(len(keys), np.int64)
        place(self._books.tables.copies, loaded, sources, slots, ranks)
        hosts = [*map(self._books.hosts.get, sources.tolist())]
        kinds = [*zip(ranks.tolist(), [host is not None for host in hosts], strict=True)]
        for kind in set(kinds):
            own = [index for index, other in enumerate(kinds) if other == kind]
            self._movers.load(
                Loads(
                    lease,
                    self._books.levels[kind[0]],
                    [keys[index] for index in own],
                    loaded[own],
                    sources[own],
                    slots[own].tolist(),
                    [self._host.ref(host) for index in own if (host := hosts[index])],
                ),
                self._loaded,
            )

    def _loaded(self, loads: Loads, seconds: float) -> None:
        """`seconds` is what the operation took."""
        for host in loads.hosts:
            self._host.unref(host)
        loads.level.cost.observe(seconds / len(loads), len(loads))
        self._told(loads)
        loaded, sources = loads.copies, loads.sources
        if loads.errors:
            failed = list(loads.errors)
            loaded, sources = np.delete(loaded, failed), np.delete(sources, failed)
        if len(loaded):
            self._have_come(loads.level, loaded, sources, seconds / len(loads))
        for index, error in loads.errors.items():
            self._lost(self._copy(loads.copies[index]), self._copy(loads.sources[index]), error)

    def _told(self, loads: Loads) -> None:
        """Leases that wait for the blocks: the one that asked for them, and who found them on their way."""
        loads.lease.num_pending -= len(loads)
        waiting = self._books.waiters
        for index, row in enumerate(loads.copies.tolist()) if waiting or loads.errors else ():
            others = waiting.pop(row, ())
            for lease in others:
                lease.num_pending -= 1
            if index in loads.errors:
                for lease in (loads.lease, *others):
                    lease.has_failed = True
                    lease.origins.pop(loads.keys[index], None)

    def _have_come(self, level: Level, loaded: Ints32, sources: Ints32, seconds: float) -> None:
        """`seconds` a block."""
        level.num_loaded += len(loaded)
        level.timer.observe(seconds, len(loaded))
        has_left, is_unread = end(self._books.tables.copies, loaded, sources)
        if has_left:
            for source in copies(self._books, sources):
                self._ladder.settle(source)
        if self._ladder.writes_through:
            self._ladder.store_hits(loaded)
        if is_unread:
            for copy in copies(self._books, loaded):
                if not copy.pins:
                    self.late.add(copy.node.key)

    def _copy(self, row: int) -> Copy:
        return Copy(self._books, int(row))

    def _lost(self, copy: Copy, source: Copy, error: Exception) -> None:
        """What the source has is of no use; slower tiers may still have the block."""
        level, key = source.level, copy.node.key
        is_away = isinstance(error, UnreachableError)
        if is_away or not (level.is_shared and isinstance(error, GoneError)):
            level.failed("load", error)
            level.evicted["corrupt"] += not is_away
        is_there = source.is_live
        self._ladder.unhold(source)
        if is_there:
            (self._ladder.forget if is_away else self._ladder.drop)(source)
        copy.holds -= 1
        self._ladder.drop(copy)
        self.late.add(key)  # what slower tiers have of it was held
