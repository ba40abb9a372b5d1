"""One tier's books: which blocks are charged to it, who leaves next, and what has been counted.

Knows nothing about the other tiers or how bytes move.
"""

from tiers.books import loads, steps
from tiers.books.books import Books
from tiers.books.layout import (
    CAPACITY,
    NO_QUOTA,
    NONE,
    NUM_BLOCKS,
    NUM_GIVEN_UP,
    NUM_OVER,
    NUM_REFUSED,
    NUM_TENANT_COLUMNS,
    QUOTA,
    STORE_AFTER_HITS,
    TENANTS,
    TIER,
    WRITE_MODE,
)
from tiers.complaints import Complaints
from tiers.config import TierChanges, TierConfig, check_hits, check_quota
from tiers.eviction import Exit, Order
from tiers.flows import Dropped, Flows, max_drops
from tiers.load_cost import LoadCost
from tiers.names import TIERS, Policy, Tier, WriteMode
from tiers.node import Copy, Node
from tiers.stats import EVICTION_REASONS, OPERATIONS, LoadTimer, TierStats

MODES = (WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH, WriteMode.WRITE_SELECTIVE)


class Level:
    """`rank` 0 is gpu. `block_bytes` is what one block takes here; `num_blocks` are charged now.

    `num_arriving` are not stored yet: some of those, and what was given up on its way. `is_behind`: tenants have more
    than they may, and that still goes on.
    """

    is_shared = False

    def __init__(self, books: Books, rank: int, config: TierConfig, block_bytes: int) -> None:
        self.rank = rank
        self.tier = config.tier
        self.block_bytes = block_bytes
        self._books = books
        self._row = books.tables.levels[rank].data
        self._row[TIER] = TIERS.index(config.tier)
        books.levels.append(self)
        self.write_mode = config.write_mode
        self.store_after_hits = config.store_after_hits
        self.load = config.load
        self.tenant_quota = config.tenant_quota
        self.policy = Policy.LRU
        self.eviction = Order(books, rank)
        self.flows = Flows(config.tier, self._row)
        self.dropped = Dropped(books, rank)
        self.resize(config.capacity_bytes)
        self.set_policy(config.policy)
        self._tell()
        self.num_arriving = 0
        self.is_shrinking = self.is_behind = False
        self.num_stored = self.num_loaded = 0
        self.store_seconds = 0.0
        self.evicted = dict.fromkeys(EVICTION_REASONS, 0)
        self.errors = dict.fromkeys(OPERATIONS, 0)
        self._complaints = Complaints(config.tier)
        self.timer = LoadTimer()
        self.cost = LoadCost()

    @property
    def num_blocks(self) -> int:
        num_blocks: int = self._row[NUM_BLOCKS]
        return num_blocks

    def resize(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.capacity_blocks = self._row[CAPACITY] = capacity_bytes // self.block_bytes
        self._limit()

    def _limit(self) -> None:
        quota = quota_blocks(self.capacity_blocks, self.tenant_quota)
        steps.resized(*self._books.tables, self.rank, max_drops(self.capacity_blocks), quota)

    def configure(self, changes: TierChanges) -> None:
        """Raises ValueError."""
        check_hits(changes.get("store_after_hits", self.store_after_hits))
        check_quota(changes.get("tenant_quota", self.tenant_quota))
        self.store_after_hits = changes.get("store_after_hits", self.store_after_hits)
        self.write_mode = changes.get("write_mode", self.write_mode)
        self.load = changes.get("load", self.load)
        self._tell()
        self.set_policy(changes.get("policy", self.policy))
        if changes.get("tenant_quota", self.tenant_quota) != self.tenant_quota:
            self.tenant_quota = changes["tenant_quota"]
            self._limit()

    def set_policy(self, policy: Policy) -> None:
        """Who leaves next is decided by another policy; the blocks stay, in the order in which they would have left."""
        if policy is self.policy:
            return
        self.policy = policy
        self.eviction.follow(policy)

    def _tell(self) -> None:
        """What is compiled reads it in the tables."""
        self._row[WRITE_MODE] = MODES.index(self.write_mode)
        self._row[STORE_AFTER_HITS] = self.store_after_hits

    def rebalanced(self) -> None:
        """What could leave has left."""
        self.is_shrinking &= self.is_over

    @property
    def is_over(self) -> bool:
        return self.num_blocks > self.capacity_blocks

    def has_room_for(self, node: Node) -> bool:
        return self.num_blocks < self.capacity_blocks and not self.is_at_quota(node)

    @property
    def is_beyond(self) -> bool:
        """Tenants have more blocks here than they may, and these are to leave."""
        return bool(self._row[NUM_OVER] > 0)

    @property
    def quota(self) -> int:
        """Blocks that one tenant may have; more than there can be, where that is all."""
        quota: int = self._row[QUOTA]
        return quota

    def is_at_quota(self, node: Node, num_coming: int = 0) -> bool:
        """With one more block than those that come, the tenant of this one would have more than it may."""
        return bool(self._row[TENANTS + NUM_TENANT_COLUMNS * node.tenant] + num_coming >= self._row[QUOTA])

    def refuse(self) -> None:
        """A block is not stored: its tenant has its share, and nothing of that may leave."""
        self._row[NUM_REFUSED] += 1

    @property
    def writes_through(self) -> bool:
        """Blocks come while they are in gpu, all of them or those that were hit often enough."""
        return self.write_mode is not WriteMode.WRITE_BACK and self.capacity_blocks > 0

    @property
    def keeps_hits(self) -> bool:
        """A block stays when it is read, besides the copy that goes up."""
        return bool(loads.keeps_hits(self._books.tables.levels, self.rank))

    def takes(self, node: Node) -> bool:
        """Whether the block may come here at all: it was hit often enough, where that is asked for."""
        return self.write_mode is not WriteMode.WRITE_SELECTIVE or node.num_hits >= self.store_after_hits

    @property
    def reason(self) -> str:
        """Why a block that makes room leaves."""
        return "resize" if self.is_shrinking else "capacity"

    def of(self, node: Node) -> Copy | None:
        return node.copy_at(self.rank)

    def add(self, node: Node, source: Tier, origin: Tier | None = None) -> Copy:
        """`origin` is the tier that it came from; None: from the model, or it was found here."""
        self._books.reserve(copies=1)
        came = NONE if origin is None else TIERS.index(origin)
        row = steps.add(*self._books.tables, node.row, self.rank, TIERS.index(source), came)
        return Copy(self._books, row)

    def expect(self) -> None:
        """One of the blocks that were added is on its way; `arrived` follows."""
        self.num_arriving += 1

    def arrived(self, copy: Copy) -> None:
        """Stored, or given up."""
        self.num_arriving -= 1
        if not copy.is_live:
            self._row[NUM_GIVEN_UP] -= 1

    @property
    def num_coming(self) -> int:
        """Blocks on their way that are wanted still."""
        num_given_up: int = self._row[NUM_GIVEN_UP]
        return self.num_arriving - num_given_up

    def failed(self, operation: str, why: object) -> None:
        """A copy of a block to here ("store") or from here ("load") came to nothing."""
        self.errors[operation] += 1
        self._complaints.add(operation, why)

    def remove(self, copy: Copy, leave: Exit = Exit.DROPPED) -> None:
        """After `Exit.EVICTED` call `evicted_to`, once it is clear where it goes."""
        self._books.reserve(memories=1)
        steps.leave(*self._books.tables, copy.row, int(leave))

    def evicted_to(self, node: Node, target: Tier | None) -> None:
        """What was removed to make room went there; None: nowhere."""
        self._books.reserve(memories=1)
        went = NONE if target is None else TIERS.index(target)
        steps.went(*self._books.tables, node.row, self.rank, went)

    def stats(self, block_size: int, used_blocks: int) -> TierStats:
        return TierStats(
            capacity_bytes=self.capacity_bytes,
            capacity_blocks=self.capacity_blocks,
            block_bytes=self.block_bytes,
            used_bytes=used_blocks * self.block_bytes,
            resident_blocks=self.num_blocks,
            resident_tokens=self.num_blocks * block_size,
            pinned_blocks=self.num_blocks - len(self.eviction),
            stored_bytes=self.num_stored * self.block_bytes,
            stored_blocks=self.num_stored,
            loaded_bytes=self.num_loaded * self.block_bytes,
            loaded_blocks=self.num_loaded,
            evicted_blocks=dict(self.evicted),
            errors=dict(self.errors),
            load_seconds=self.timer.read(),
            store_seconds=self.store_seconds,
            entered_blocks=self.flows.entered,
            left_blocks=self.flows.left,
            missed_blocks=self.flows.num_missed,
            refused_blocks=self._row[NUM_REFUSED],
            tenant_blocks=self._books.tenants.num_blocks(self.rank),
        )


def quota_blocks(capacity_blocks: int, share: float) -> int:
    """Whole blocks, at least one; a millionth makes up for shares like 0.29 that are not quite what was written."""
    return NO_QUOTA if share == 1 else max(1, int(capacity_blocks * share + 1e-6))
