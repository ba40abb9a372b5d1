"""The ways down: a block that leaves goes to the next slower tier, and what is full is stored. `ascent` has the way up.

Decides and books; the bytes follow by operations that transfer threads run. Knows nothing about leases' lengths.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from tiers.books import requests, steps
from tiers.books.books import Books
from tiers.books.compiled import Ints32
from tiers.eviction import Exit
from tiers.gpu import Gpu
from tiers.host import NO_SLOT, Host, HostSlot
from tiers.level import Level
from tiers.movers import Movers
from tiers.names import Tier
from tiers.node import Copy, Node, copies, find

# Blocks that leave at one poll because their tenants have more than they may: about 3 ms.
SURPLUS_A_STEP = 256


class Ladder:
    """All levels, gpu first. Every change ends with `submit`, which sends the operations off."""

    def __init__(self, levels: list[Level], books: Books, gpu: Gpu, host: Host, movers: Movers) -> None:
        self.levels = levels
        self._slower = levels[1:]
        self._books = books
        self._gpu = gpu
        self._host = host
        self._movers = movers
        self._disk = next((level for level in levels if level.tier is Tier.DISK), None)
        self._forgotten: set[Copy] = set()

    # -- down --------------------------------------------------------------------------------------------------------
    def evict(self, copy: Copy, reason: str) -> None:
        """The block leaves its tier: to the next slower one, unless it is there already. Its children left before."""
        level, node = copy.level, copy.node
        level.remove(copy, Exit.EVICTED)
        level.evicted[reason] += 1
        target = self._next(level, node)
        has_moved = target is not None and self._pass_down(copy, target)
        level.evicted_to(node, target.tier if has_moved and target else None)
        self.settle(copy)
        self._forget_if_gone(node)

    def drop(self, copy: Copy) -> None:
        """The block leaves its tier and goes nowhere; blocks that follow it stay where they are."""
        node = copy.node
        copy.level.remove(copy)
        self.settle(copy)
        node.tidy()

    def forget(self, copy: Copy) -> None:
        """What lies in a shared tier cannot be had, or others have removed it: only the books change."""
        node = copy.node
        copy.level.remove(copy)
        if copy.holds:
            self._forgotten.add(copy)
        else:
            copy.give_row()
        node.tidy()

    def rebalance(self) -> bool:
        """Tenants that have more than they may, and slower tiers that do, pass their oldest blocks on.

        True if a tenant had too much: more of that may be left for the next time.
        """
        has_trimmed = self._trim(self._gpu.level)
        for level in self._slower:
            has_trimmed |= self._trim(level)
            while level.is_over and (oldest := level.eviction.victim()):
                self.evict(oldest, level.reason)
            level.rebalanced()
        return has_trimmed

    def _trim(self, level: Level) -> bool:
        num_left = SURPLUS_A_STEP
        while num_left and level.is_beyond and (surplus := level.eviction.surplus()):
            self.evict(surplus, "resize" if level.is_shrinking and level.is_over else "quota")
            num_left -= 1
        level.is_behind = not num_left and level.is_beyond
        return num_left < SURPLUS_A_STEP

    def store_through(self, copy: Copy) -> bool:
        """A block has become valid in gpu: tiers that write through get it now, if they have or can make room.

        True if something has moved.
        """
        levels = [level for level in self._slower if level.writes_through]
        return bool(levels) and self._store(copy, levels)

    @property
    def writes_through(self) -> bool:
        """Whether some tier wants blocks as they fill, or as they are hit."""
        return any(level.writes_through for level in self._slower)

    def store_hits(self, rows: Ints32) -> None:
        """Blocks with copies in gpu (rows) were hit: tiers that wait for the n-th hit get those for which it was that.

        Tiers that write through get what they lack: each holds what was used last, so what-if can say what it serves.
        """
        lacking = np.empty(len(rows), np.int32)
        num_lacking = requests.lacking(*self._books.tables, rows, lacking)
        levels = [level for level in self._slower if level.writes_through]
        for copy in copies(self._books, lacking[:num_lacking]):
            if self._store(copy, levels):
                self.rebalance()

    def _store(self, copy: Copy, levels: Sequence[Level]) -> bool:
        node = copy.node
        missing = [level for level in levels if level.of(node) is None and level.takes(node)]
        if not missing:
            return False
        open_levels = [level for level in missing if self._accepts(level)]
        wanted = [level for level in open_levels if self._make_room(level, node)]
        host = self._bytes_of_node(node, copy) if wanted else None
        if host is None:
            for level in wanted:
                level.failed("store", NO_SLOT)
            return True
        for level in wanted:
            self._add(copy, level, self._host.ref(host))
        self._host.unref(host)
        return True

    def _next(self, level: Level, node: Node) -> Level | None:
        for slower in self.levels[level.rank + 1 :]:
            if slower.capacity_blocks and slower.takes(node):
                return slower
        return None

    def _pass_down(self, copy: Copy, target: Level) -> bool:
        """True if the target gets the block from here."""
        below = target.of(copy.node)
        if below is not None:
            if not target.writes_through:  # there, its place is that of its last use
                target.eviction.enter(below)
        elif not target.writes_through or (copy.node.fastest is None and target.has_room_for(copy.node)):
            # What a tier that got every block as it filled has let go since was older than all that it kept.
            return self._move(copy, target)
        return False

    def _accepts(self, level: Level) -> bool:
        refusal = self._movers.refusal(level.tier, level.num_arriving)
        if refusal:
            level.failed("store", refusal)
        return not refusal

    def _move(self, copy: Copy, target: Level) -> bool:
        if not self._accepts(target):
            return False
        host = self._bytes_of(copy)
        if host is None:
            target.failed("store", NO_SLOT)
            return False
        self._add(copy, target, host)
        return True

    def _add(self, origin: Copy, level: Level, host: HostSlot) -> None:
        """Charge the block to the level; `host`, whose reference the copy takes over, has its bytes or will have."""
        copy = level.add(origin.node, origin.tier, origin.level.tier)
        copy.host = host
        copy.holds = 1
        level.expect()
        if not copy.node.is_pinned:
            level.eviction.enter(copy)
        if host.is_filled:
            self._filled(copy)
        else:
            host.waiting.append(copy)

    def _make_room(self, level: Level, node: Node) -> bool:
        """For the block: at its tenant's cost where that has as much as it may."""
        while level.is_at_quota(node):
            own = level.eviction.victim_of(node.tenant)
            if own is None:
                level.refuse()
                return False
            self.evict(own, "quota")
        while level.num_blocks >= level.capacity_blocks:
            oldest = level.eviction.victim()
            if oldest is None:
                return False
            self.evict(oldest, level.reason)
        return True

    def _bytes_of_node(self, node: Node, gpu_copy: Copy) -> HostSlot | None:
        hosts = [copy.host for copy in node.live_copies() if copy.host is not None]
        return self._host.ref(hosts[0]) if hosts else self._bytes_of(gpu_copy)

    def _bytes_of(self, copy: Copy) -> HostSlot | None:
        """A reference to the block's bytes in host memory, copied there if need be; None if it has too much already."""
        if copy.host is not None:
            return self._host.ref(copy.host)
        host = self._host.take()
        if host is not None:
            copy.holds += 1
            self._movers.drain(copy, self._host.ref(host), partial(self._drained, copy, host))
        return host

    def _drained(self, copy: Copy, host: HostSlot, error: Exception | None, seconds: float) -> None:
        if error is not None and copy.level.rank:
            copy.level.failed("load", error)
        self.unhold(copy)
        waiting, host.waiting = host.waiting, []
        if waiting:  # the fastest that wanted it; for the others the block lies in memory then
            waiting[0].level.store_seconds += seconds
        host.is_filled = error is None
        for target in waiting:
            if error is None:
                self._filled(target)
            else:
                self._not_stored(target, error)
        self._host.unref(host)

    def _filled(self, copy: Copy) -> None:
        """The copy's host slot has the block: that is all for cpu, and half the way for disk and remote."""
        assert copy.host is not None
        if copy.level.tier is Tier.CPU:
            self._stored(copy)
            return
        if copy.source is Tier.GPU:
            copy.source = copy.level.tier  # it is in neither tier's memory now: the one it is charged to counts
        self._movers.write(copy, self._host.ref(copy.host), partial(self._written, copy))

    def _written(self, copy: Copy, error: Exception | None, seconds: float) -> None:
        copy.level.store_seconds += seconds
        host, copy.host = copy.host, None
        assert host is not None
        self._host.unref(host)  # the copy's own
        self._host.unref(host)  # the operation's
        if error is None:
            self._stored(copy)
        else:
            self._not_stored(copy, error)

    def _stored(self, copy: Copy) -> None:
        copy.validate()
        copy.level.arrived(copy)
        copy.level.num_stored += copy.is_live
        self.unhold(copy)

    def _not_stored(self, copy: Copy, error: Exception) -> None:
        level, node = copy.level, copy.node
        level.failed("store", error)
        if level.is_shared:
            self._forgotten.add(copy)
        is_wanted = copy.is_live
        if is_wanted:
            level.remove(copy)
        level.arrived(copy)
        self.unhold(copy)
        if is_wanted:
            self._forget_if_gone(node)

    def touch(self, node: Node) -> None:
        """In all tiers that have it."""
        steps.touch_all(*self._books.tables, node.row)

    # -- both --------------------------------------------------------------------------------------------------------
    def settle(self, copy: Copy) -> None:
        """Give back what a copy that has left its tier took there, once nobody reads it."""
        if copy.is_live or copy.pins:
            return
        level = copy.level
        if copy.holds:
            if level.rank == 0:
                self._gpu.evicted(copy)
            elif self._may_be_written(copy):
                self._movers.delete(level.tier, copy.node.key)
            return
        if level.rank == 0:
            self._gpu.drained(copy.slot)
        elif copy.host is not None:
            self._host.unref(copy.host)
        if level.rank and self._is_to_be_removed(copy):
            self._movers.delete(level.tier, copy.node.key)
        copy.give_row()

    def _may_be_written(self, copy: Copy) -> bool:
        """A file whose write nobody has told of yet: it goes before that of whoever gets its place is written."""
        is_under_way = not copy.is_valid and copy.host is not None and copy.host.is_filled
        return copy.level.tier is Tier.DISK and is_under_way and not self._has_newer(copy)

    def submit(self) -> None:
        self._movers.submit(self._disk.num_coming if self._disk else 0)

    def _is_to_be_removed(self, copy: Copy) -> bool:
        """A tier that is switched off leaves what is shared to the others."""
        level: Level = copy.level
        if copy in self._forgotten:
            self._forgotten.remove(copy)
            return False
        is_kept = level.is_shared and not level.capacity_blocks
        return level.tier in (Tier.DISK, Tier.REMOTE) and not is_kept and not self._has_newer(copy)

    def _has_newer(self, copy: Copy) -> bool:
        """The block was stored again meanwhile, under the same name."""
        node = find(self._books, copy.node.key)
        return node is not None and copy.level.of(node) is not None

    def unhold(self, copy: Copy) -> None:
        """A transfer no longer reads or fills it."""
        copy.holds -= 1
        if not copy.holds:
            self.settle(copy)

    def _forget_if_gone(self, node: Node) -> None:
        """A block that has left its last tier takes those after it along: nothing could find them."""
        if node.fastest is not None:
            return
        if node.has_children:
            for child in node.descendants():
                if not child.is_pinned:
                    self._orphaned(child)
        node.tidy()

    def _orphaned(self, node: Node) -> None:
        for copy in node.live_copies():
            copy.level.evicted["orphaned"] += 1
            copy.level.remove(copy)
            self.settle(copy)
        node.tidy()
