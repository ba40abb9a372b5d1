"""The tiered prefix cache: a library on the standard one, numpy, numba, torch, xxhash, psutil and redis.

Knows nothing about models, requests' text, Django or Celery.
"""

from typing import TYPE_CHECKING

from tiers.lazily import lazily

if TYPE_CHECKING:
    from tiers.cache import TieredCache
    from tiers.config import CacheConfig, SlabSpec, TierChanges, TierConfig
    from tiers.cuda_pool import CudaPool
    from tiers.errors import CapacityError, CorruptError, RefusedError
    from tiers.keys import BlockKey, chain_keys, next_key, root_key
    from tiers.lease import Lease, LeaseState
    from tiers.limits import MachineLimits
    from tiers.names import TIERS, Compression, LoadChoice, Policy, Tier, WriteMode
    from tiers.pool import BlockPool, MemoryPool
    from tiers.stats import CacheStats, LoadSeconds, TierStats
    from tiers.warm_up import warm_up
else:
    __getattr__ = lazily(
        __name__,
        {
            "BlockKey": "keys",
            "BlockPool": "pool",
            "CacheConfig": "config",
            "CacheStats": "stats",
            "CapacityError": "errors",
            "Compression": "names",
            "CorruptError": "errors",
            "CudaPool": "cuda_pool",
            "Lease": "lease",
            "LeaseState": "lease",
            "LoadChoice": "names",
            "LoadSeconds": "stats",
            "MachineLimits": "limits",
            "MemoryPool": "pool",
            "Policy": "names",
            "RefusedError": "errors",
            "SlabSpec": "config",
            "TIERS": "names",
            "Tier": "names",
            "TierChanges": "config",
            "TierConfig": "config",
            "TierStats": "stats",
            "TieredCache": "cache",
            "WriteMode": "names",
            "chain_keys": "keys",
            "next_key": "keys",
            "root_key": "keys",
            "warm_up": "warm_up",
        },
    )

__all__ = [
    "TIERS",
    "BlockKey",
    "BlockPool",
    "CacheConfig",
    "CacheStats",
    "CapacityError",
    "Compression",
    "CorruptError",
    "CudaPool",
    "Lease",
    "LeaseState",
    "LoadChoice",
    "LoadSeconds",
    "MachineLimits",
    "MemoryPool",
    "Policy",
    "RefusedError",
    "SlabSpec",
    "Tier",
    "TierChanges",
    "TierConfig",
    "TierStats",
    "TieredCache",
    "WriteMode",
    "chain_keys",
    "next_key",
    "root_key",
    "warm_up",
]
