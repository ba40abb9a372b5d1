"""One tier's books: which blocks are charged to it, who leaves next, and what has been counted.

Knows nothing about the other tiers or how bytes move.
"""

from tiers.config import TierChanges, TierConfig, check_hits
from tiers.flows import DroppedKeys, Flows
from tiers.keys import BlockKey
from tiers.load_cost import LoadCost
from tiers.names import Policy, Tier, WriteMode
from tiers.node import Copy, Node
from tiers.policies import EvictionPolicy, Exit, make_policy
from tiers.stats import EVICTION_REASONS, OPERATIONS, LoadTimer, TierStats


class Level:
    """`rank` 0 is gpu. `block_bytes` is what one block takes here; `num_blocks` are charged now.

    `num_arriving` of those are not stored yet.
    """

    is_shared = False

    def __init__(self, rank: int, config: TierConfig, block_bytes: int) -> None:
        self.rank = rank
        self.tier = config.tier
        self.block_bytes = block_bytes
        self.write_mode = config.write_mode
        self.store_after_hits = config.store_after_hits
        self.load = config.load
        self.policy = config.policy
        self.eviction = self._make_policy(config.policy, config.capacity_bytes // block_bytes)
        self.flows = Flows(config.tier)
        self.dropped = DroppedKeys(0)
        self.resize(config.capacity_bytes)
        self.num_blocks = self.num_arriving = 0
        self.is_shrinking = False
        self.num_stored = self.num_loaded = 0
        self.store_seconds = 0.0
        self.evicted = dict.fromkeys(EVICTION_REASONS, 0)
        self.errors = dict.fromkeys(OPERATIONS, 0)
        self.timer = LoadTimer()
        self.cost = LoadCost()

    def resize(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.capacity_blocks = capacity_bytes // self.block_bytes
        self.eviction.resize(self.capacity_blocks)
        self.dropped.resize(self.capacity_blocks)

    def configure(self, changes: TierChanges) -> None:
        """Raises ValueError."""
        check_hits(changes.get("store_after_hits", self.store_after_hits))
        self.store_after_hits = changes.get("store_after_hits", self.store_after_hits)
        self.write_mode = changes.get("write_mode", self.write_mode)
        self.load = changes.get("load", self.load)
        self.set_policy(changes.get("policy", self.policy))

    def set_policy(self, policy: Policy) -> None:
        """Who leaves next is decided by another policy; the blocks stay, in the order in which they would have left."""
        if policy is self.policy:
            return
        blocks = self.eviction.oldest_first()
        self.policy = policy
        self.eviction = self._make_policy(policy, self.capacity_blocks)
        for copy in blocks:
            self.eviction.touch(copy)

    def _make_policy(self, policy: Policy, capacity_blocks: int) -> EvictionPolicy:
        return make_policy(policy, capacity_blocks)

    def rebalanced(self) -> None:
        """What could leave has left."""
        self.is_shrinking &= self.is_over

    @property
    def is_over(self) -> bool:
        return self.num_blocks > self.capacity_blocks

    @property
    def has_room(self) -> bool:
        return self.num_blocks < self.capacity_blocks

    @property
    def writes_through(self) -> bool:
        """Blocks come while they are in gpu, all of them or those that were hit often enough."""
        return self.write_mode is not WriteMode.WRITE_BACK and self.capacity_blocks > 0

    @property
    def keeps_hits(self) -> bool:
        """A block stays when it is read, besides the copy that goes up."""
        return self.writes_through

    def takes(self, node: Node) -> bool:
        """Whether the block may come here at all: it was hit often enough, where that is asked for."""
        return self.write_mode is not WriteMode.WRITE_SELECTIVE or node.num_hits >= self.store_after_hits

    @property
    def reason(self) -> str:
        """Why a block that makes room leaves."""
        return "resize" if self.is_shrinking else "capacity"

    def of(self, node: Node) -> Copy | None:
        return node.copies[self.rank]

    def add(self, node: Node, source: Tier, origin: Tier | None = None) -> Copy:
        """`origin` is the tier that it came from; None: from the model, or it was found here."""
        if origin is None:
            self.flows.num_new += 1
        else:
            self.flows.came[origin] += 1
        copy = node.copies[self.rank] = Copy(node, self, source)
        self.num_blocks += 1
        return copy

    def expect(self) -> None:
        """One of the blocks that were added is on its way; `arrived` follows."""
        self.num_arriving += 1

    def arrived(self) -> None:
        """Stored, or given up."""
        self.num_arriving -= 1

    def remove(self, copy: Copy, leave: Exit = Exit.DROPPED) -> None:
        """After `Exit.EVICTED` call `evicted_to`, once it is clear where it goes."""
        copy.node.copies[self.rank] = None
        copy.is_live = False
        self.num_blocks -= 1
        self.eviction.remove(copy, leave)
        if leave is Exit.PROMOTED:
            self.flows.went[Tier.GPU] += 1
        elif leave is Exit.DROPPED:
            self._gone(copy.node)

    def evicted_to(self, node: Node, target: Tier | None) -> None:
        """What was removed to make room went there; None: nowhere."""
        if target is not None:
            self.flows.went[target] += 1
        elif self._gone(node):
            self.dropped.add(node.key)

    def _gone(self, node: Node) -> bool:
        """True if no tier has it any more."""
        if node.fastest is not None:
            self.flows.num_freed += 1
            return False
        self.flows.num_dropped += 1
        return True

    def computed_again(self, key: BlockKey) -> None:
        """A block that was dropped here not long ago is back: from the model."""
        self.dropped.forget(key)
        self.flows.num_missed += 1

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
        )
