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
    """When a block is stored in a tier: once it leaves the faster one, as soon as it is full, or after its n-th hit."""

    WRITE_BACK = "write_back"
    WRITE_THROUGH = "write_through"
    WRITE_SELECTIVE = "write_selective"


class LoadChoice(StrEnum):
    """Which blocks are loaded from a tier: all that are found, or those that are cheaper to load than to compute."""

    ALWAYS = "always"
    WHEN_CHEAPER = "when_cheaper"


class Compression(StrEnum):
    """What a block is written as in a slower tier: as it is, or with less precision and fewer bytes."""

    NONE = "none"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"


class Policy(StrEnum):
    """Which block leaves first."""

    LRU = "lru"
    S3FIFO = "s3fifo"
    ARC = "arc"
