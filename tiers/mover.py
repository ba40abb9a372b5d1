"""Moves blocks between levels: evictions and cascades down, promotions up. The bytes move on transfer threads.

Knows nothing about requests; it tells `on_loaded` which gpu copy has arrived or failed. Runs on the stepping thread.
"""

import logging
from collections.abc import Callable
from functools import partial

from tiers.disk import CorruptError
from tiers.index import Copy, Index, Node
from tiers.level import Level
from tiers.names import WriteMode
from tiers.pool import BlockPool
from tiers.stores import Store
from tiers.transfers import Transfers

log = logging.getLogger(__name__)

GPU = 0
# An insertion may push out this many at once; what a resize leaves over goes in portions, so that no step waits for it.
_TRIM_AT_INSERT = 2
_TRIM_AT_POLL = 64


class Mover:
    """Levels, fastest first, and what lies in them. `stores[i]` is level i's; level 0 is the gpu pool."""

    def __init__(self, levels: list[Level], pool: BlockPool, stores: dict[int, Store]) -> None:
        self.levels = levels
        self.index = Index(len(levels))
        self.pool = pool
        self.transfers = Transfers()
        self.on_loaded: Callable[[Copy, bool], None] = lambda copy, is_whole: None
        self.num_gpu_used = 0
        self._stores = stores
        self._shrinking: set[int] = set()

    # -- gpu slots ---------------------------------------------------------------------------------------------------
    @property
    def gpu(self) -> Level:
        return self.levels[GPU]

    @property
    def num_gpu_free(self) -> int:
        return self.gpu.capacity_blocks - self.num_gpu_used

    def take_gpu_slot(self) -> int:
        self.num_gpu_used += 1
        return self.pool.take()

    def give_gpu_slot(self, slot: int) -> None:
        self.num_gpu_used -= 1
        self.pool.give_back(slot)

    def make_room(self, num_blocks: int) -> bool:
        """Evict from gpu until so many slots are free. False: not yet, copies are under way, or all is pinned."""
        while num_blocks > self.num_gpu_free + self.gpu.num_leaving:
            victim = self.gpu.victim()
            if victim is None:
                break
            self.evict(victim, self.gpu.eviction_reason)
        return num_blocks <= self.num_gpu_free

    # -- down --------------------------------------------------------------------------------------------------------
    def evict(self, copy: Copy, reason: str) -> None:
        """The copy leaves its level: to the next slower one that takes evicted blocks, if there is one."""
        self.levels[copy.level].counters.evicted[reason] += 1
        self.levels[copy.level].start_leaving(copy)
        target = self._next_level(copy)
        if target is not None:
            self._send_down(copy, target)
        self.leave_if_idle(copy)

    def drop(self, copy: Copy, reason: str | None) -> None:
        """The copy goes, and nothing of it is kept; without a `reason` it has only moved and is not counted."""
        level = self.levels[copy.level]
        if reason:
            level.counters.evicted[reason] += 1
        if not copy.is_leaving:
            level.start_leaving(copy)
        self.leave_if_idle(copy)

    def leave_if_idle(self, copy: Copy) -> None:
        is_gone = copy.node.copies[copy.level] is not copy
        if is_gone or not copy.is_leaving or not copy.is_idle:
            return
        self.levels[copy.level].remove(copy)
        self.index.drop_if_empty(copy.node)
        if copy.level == GPU:
            self.give_gpu_slot(copy.slot)
        else:
            self._delete(copy)

    def write_through(self, copy: Copy, *, above: int | None = None) -> None:
        """Copies of a gpu block for every level that takes blocks as they fill (`above`: only faster than that)."""
        for level in self.levels[1:above]:
            is_wanted = level.write_mode is WriteMode.WRITE_THROUGH and level.capacity_blocks > 0
            if is_wanted and copy.node.copies[level.index] is None:
                self._store(copy, level)

    def trim(self, level: Level, at_most: int) -> bool:
        """Push out what is over the size, but no more than that at once. True if something has left."""
        num_left = 0
        while num_left < at_most and self._num_over(level) > 0 and (victim := level.victim()):
            self.evict(victim, level.eviction_reason)
            num_left += 1
        return num_left > 0

    def resized(self, level: Level) -> None:
        level.eviction_reason = "resize"
        self._shrinking.add(level.index)

    # -- up ----------------------------------------------------------------------------------------------------------
    def load(self, source: Copy) -> Copy:
        """Start the promotion of a block to gpu. `source` is pinned already and stays so until the copy has ended."""
        node = source.node
        copy = self.gpu.add(node, self.take_gpu_slot(), is_valid=False)
        work = partial(self._stores[source.level].load, source.slot, node.key, self.pool, copy.slot)
        self.transfers.start(source.level, "load", work, partial(self._loaded, source, copy))
        return copy

    def moved_up(self, node: Node) -> None:
        """The block is in gpu: levels that hold what faster ones do not, let it go."""
        for level in self.levels[1:]:
            copy = node.copies[level.index]
            if copy is not None and level.write_mode is WriteMode.WRITE_BACK:
                self.drop(copy, None)

    def poll(self) -> bool:
        """Apply copies that have ended; go on with what resizes left over."""
        has_changed = False
        for apply in self.transfers.finished():
            apply()
            has_changed = True
        for level in self.levels:
            has_changed |= self.trim(level, _TRIM_AT_POLL - self.transfers.num_under_way)
        for number in list(self._shrinking):
            self._finish_resize(self.levels[number])
        return has_changed

    # -- inside ------------------------------------------------------------------------------------------------------
    def _next_level(self, copy: Copy) -> Level | None:
        """Where an evicted block goes. None: nowhere, or it is there already."""
        takers = (
            x for x in self.levels[copy.level + 1 :] if x.capacity_blocks and x.write_mode is WriteMode.WRITE_BACK
        )
        return next(takers, None)

    def _send_down(self, source: Copy, level: Level) -> None:
        there = source.node.copies[level.index]
        if there is None:
            self._store(source, level)
        elif there.is_leaving:
            level.rescue(there)
            self.trim(level, _TRIM_AT_INSERT)

    def _store(self, source: Copy, level: Level) -> None:
        node, store = source.node, self._stores[level.index]
        try:
            slot = store.take()
        except MemoryError:
            level.counters.errors["store"] += 1
            return
        copy = level.add(node, slot, is_valid=False)
        source.num_readers += 1
        read = self._reader(source)

        def work() -> None:
            store.save(slot, node.key, node.parent_key, read())

        self.transfers.start(level.index, "store", work, partial(self._stored, source, copy))
        self.trim(level, _TRIM_AT_INSERT)

    def _reader(self, source: Copy) -> Callable[[], memoryview]:
        if source.level == GPU:
            return partial(self.pool.read, source.slot)
        return partial(self._stores[source.level].view, source.slot, source.node.key)

    def _stored(self, source: Copy, copy: Copy, error: BaseException | None, seconds: float) -> None:
        level = self.levels[copy.level]
        source.num_readers -= 1
        if error is None:
            level.landed(copy)
            level.counters.stored_blocks += 1
            if not source.is_leaving and level.write_mode is WriteMode.WRITE_BACK:
                self.drop(copy, None)  # the block was wanted again while it was on its way down
            else:
                self.leave_if_idle(copy)
        else:
            self._note(level, "store", error)
            copy.is_arriving = False
            self.drop(copy, None)
        self.leave_if_idle(source)

    def _loaded(self, source: Copy, copy: Copy, error: BaseException | None, seconds: float) -> None:
        level, node = self.levels[source.level], source.node
        level.unpin(source)
        if error is None:
            level.counters.loaded(seconds)
            self.gpu.landed(copy)
            self.moved_up(node)
            self.write_through(copy, above=source.level)
        else:
            self._note(level, "load", error)
            self._detach(copy)
            level.spoil(source)
            self.drop(source, "corrupt")
        self.leave_if_idle(source)
        self.leave_if_idle(copy)
        self.on_loaded(copy, error is None)

    def _detach(self, copy: Copy) -> None:
        """A gpu slot whose bytes did not arrive: nothing for the index, but its holders still have it."""
        self.gpu.remove(copy)
        copy.is_arriving = False
        copy.is_leaving = copy.is_detached = True
        if not copy.num_pins:
            self.give_gpu_slot(copy.slot)

    def _delete(self, copy: Copy) -> None:
        store, slot, key = self._stores[copy.level], copy.slot, copy.node.key

        def deleted(error: BaseException | None, seconds: float) -> None:
            if error is not None:
                self._note(self.levels[copy.level], "store", error)
            store.give_back(slot)

        if store.has_files:
            self.transfers.start(copy.level, "store", partial(store.delete, slot, key), deleted)
        else:
            store.give_back(slot)

    def _num_over(self, level: Level) -> int:
        if level.index == GPU:
            return self.num_gpu_used - level.num_leaving - level.capacity_blocks
        return level.num_over

    def _finish_resize(self, level: Level) -> None:
        """All that had to leave has left: memory behind unused slots goes back to the system."""
        if self._num_over(level) > 0 or level.num_leaving:
            return
        self._shrinking.discard(level.index)
        level.eviction_reason = "capacity"
        owner = self.pool if level.index == GPU else self._stores[level.index]
        owner.resize(level.capacity_blocks)

    def _note(self, level: Level, operation: str, error: BaseException) -> None:
        level.counters.errors[operation] += 1
        report = log.warning if isinstance(error, (CorruptError, OSError)) else log.error
        report("%s tier: a %s failed and the block counts as missing: %s", level.tier, operation, error)
