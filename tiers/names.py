"""The words of the tiered cache: tiers, write modes, policies. Knows nothing about what they do."""

from enum import StrEnum


class Tier(StrEnum):
    """A place that holds blocks."""

    GPU = "gpu"
    CPU = "cpu"
    DISK = "disk"
    REMOTE = "remote"


# Canonical order, fastest first.
TIERS: tuple[Tier, ...] = tuple(Tier)


class WriteMode(StrEnum):
    """When a tier receives a block: when a faster tier evicts it, or when the block fills."""

    WRITE_BACK = "write_back"
    WRITE_THROUGH = "write_through"


class Policy(StrEnum):
    """Which block leaves a full tier first."""

    LRU = "lru"
