"""Eviction policies, by name. Each is closed under prefix; `base.py` says what they have in common."""

from collections.abc import Callable

from tiers.names import Policy
from tiers.policies.arc import Arc
from tiers.policies.base import EvictionPolicy, Exit
from tiers.policies.lru import Lru
from tiers.policies.s3fifo import S3Fifo

__all__ = ["EvictionPolicy", "Exit", "make_policy"]

_MAKERS: dict[Policy, Callable[[int], EvictionPolicy]] = {
    Policy.LRU: Lru,
    Policy.S3FIFO: S3Fifo,
    Policy.ARC: Arc,
}


def make_policy(policy: Policy, capacity_blocks: int) -> EvictionPolicy:
    """An empty one for a tier of that size."""
    return _MAKERS[policy](capacity_blocks)
