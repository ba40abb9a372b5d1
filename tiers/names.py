"""The words of the tiers: their names in canonical order, and how blocks get into the slower ones.

Knows nothing about sizes or contents.
"""

from enum import StrEnum


class Tier(StrEnum):
    """A place that holds blocks; declared fastest first."""

    GPU = "gpu"
    CPU = "cpu"
    DISK = "disk"
    REMOTE = "remote"


TIERS: tuple[Tier, ...] = tuple(Tier)


class WriteMode(StrEnum):
    """When a block is stored in a tier: once it leaves the faster one, or as soon as it is full."""

    WRITE_BACK = "write_back"
    WRITE_THROUGH = "write_through"


class Policy(StrEnum):
    """Which block leaves first."""

    LRU = "lru"
    S3FIFO = "s3fifo"
    ARC = "arc"
