"""The tiered prefix cache: a library on the standard library, numpy, torch and xxhash. No Django, Celery or engine."""

from tiers.cache import TieredCache
from tiers.config import CacheConfig, CapacityError, RefusedError, SlabSpec, TierConfig
from tiers.keys import BlockKey, chain_keys, next_key, root_key
from tiers.lease import Lease, LeaseState
from tiers.limits import MachineLimits
from tiers.names import TIERS, Policy, Tier, WriteMode
from tiers.pool import BlockPool, CudaPool, MemoryPool
from tiers.stats import CacheStats, LoadSeconds, TierStats

__all__ = [
    "TIERS",
    "BlockKey",
    "BlockPool",
    "CacheConfig",
    "CacheStats",
    "CapacityError",
    "CudaPool",
    "Lease",
    "LeaseState",
    "LoadSeconds",
    "MachineLimits",
    "MemoryPool",
    "Policy",
    "RefusedError",
    "SlabSpec",
    "Tier",
    "TierConfig",
    "TierStats",
    "TieredCache",
    "WriteMode",
    "chain_keys",
    "next_key",
    "root_key",
]
