"""The books of a tier that other engines fill and empty, too. Knows nothing about servers.

What others store is counted here and may be more than this side's limit; only what this side stores makes others leave.
"""

from tiers.keys import BlockKey
from tiers.level import Level
from tiers.names import Policy
from tiers.node import Copy
from tiers.policies import EvictionPolicy, Exit, make_policy


class Noted:
    """An eviction policy that notes which blocks this side has used, oldest first, so that others can be told."""

    def __init__(self, policy: EvictionPolicy) -> None:
        self.policy = policy
        self.used: dict[Copy, None] = {}

    def __len__(self) -> int:
        return len(self.policy)

    def __contains__(self, copy: Copy) -> bool:
        return copy in self.policy

    def touch(self, copy: Copy) -> None:
        self.policy.touch(copy)
        self._note(copy)

    def enter(self, copy: Copy) -> None:
        self.policy.enter(copy)
        self._note(copy)

    def hold(self, copy: Copy) -> None:
        self.policy.hold(copy)

    def remove(self, copy: Copy, leave: Exit) -> None:
        self.policy.remove(copy, leave)
        self.used.pop(copy, None)

    def victim(self, incoming: BlockKey = b"") -> Copy | None:
        return self.policy.victim(incoming)

    def resize(self, capacity_blocks: int) -> None:
        self.policy.resize(capacity_blocks)

    def oldest_first(self) -> list[Copy]:
        return self.policy.oldest_first()

    def check(self) -> None:
        self.policy.check()

    def _note(self, copy: Copy) -> None:
        self.used.pop(copy, None)
        self.used[copy] = None


class SharedLevel(Level):
    """`is_storing` from the moment this side has added a block until the tier is within its limit again.

    `num_switched_off` counts how often its size became 0: then the books forget what lies there.
    """

    is_shared = True
    is_storing = False
    num_switched_off = 0
    eviction: Noted

    def _make_policy(self, policy: Policy, capacity_blocks: int) -> EvictionPolicy:
        return Noted(make_policy(policy, capacity_blocks))

    def resize(self, capacity_bytes: int) -> None:
        super().resize(capacity_bytes)
        self.num_switched_off += not self.capacity_blocks

    def set_policy(self, policy: Policy) -> None:
        used = self.eviction.used
        super().set_policy(policy)
        self.eviction.used = used

    @property
    def is_over(self) -> bool:
        return (self.is_storing or self.is_shrinking) and super().is_over

    def expect(self) -> None:
        super().expect()
        self.is_storing = True

    def rebalanced(self) -> None:
        super().rebalanced()
        self.is_storing &= self.is_over

    @property
    def keeps_hits(self) -> bool:
        """Others may want it."""
        return True

    def used_elsewhere(self, copy: Copy) -> None:
        """Others have used the block; nobody here reads it now."""
        self.eviction.policy.touch(copy)

    def take_used(self) -> list[BlockKey]:
        """Keys of what was used here since the last call, oldest first, as far as it is stored."""
        used, self.eviction.used = self.eviction.used, {}
        return [copy.node.key for copy in used if copy.is_valid]
