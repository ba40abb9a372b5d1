"""The tiers that a trace is replayed through: sizes in blocks, policies, write modes. Frozen; imports nothing heavy."""

from dataclasses import dataclass

from tiers.names import TIERS, Policy, Tier, WriteMode

STORE_AFTER_HITS = 2
# About 150 bytes of books each; what is larger never fills in a replay that this machine could make.
MAX_BLOCKS = 20_000_000


@dataclass(frozen=True)
class ReplayTier:
    """One tier. With write_selective a block is stored at its hit number `store_after_hits`.

    `tenant_quota` is the largest share of its blocks that one tenant may keep there.
    """

    tier: Tier
    num_blocks: int
    policy: Policy = Policy.LRU
    write_mode: WriteMode = WriteMode.WRITE_BACK
    store_after_hits: int = STORE_AFTER_HITS
    tenant_quota: float = 1.0

    def __post_init__(self) -> None:
        if self.num_blocks < 0:
            raise ValueError(f"The {self.tier} tier has {self.num_blocks:,} blocks; expected 0 or more.")
        if self.store_after_hits < 1:
            raise ValueError(f"store_after_hits is {self.store_after_hits}; expected 1 or more.")
        if not 0 < self.tenant_quota <= 1:
            raise ValueError(f"tenant_quota is {self.tenant_quota}; expected more than 0 and at most 1.")


@dataclass(frozen=True)
class ReplayConfig:
    """Tiers, fastest first, gpu with at least one block; `block_tokens` are what one full block holds."""

    block_tokens: int
    tiers: tuple[ReplayTier, ...]

    def __post_init__(self) -> None:
        names = [tier.tier for tier in self.tiers]
        if names[:1] != [Tier.GPU] or names != [tier for tier in TIERS if tier in names]:
            raise ValueError(
                f"The tiers are {', '.join(names) or 'none'}; expected gpu first, each once, fastest first."
            )
        if not self.tiers[0].num_blocks:
            raise ValueError("The gpu tier has no block; expected at least one.")
        if self.block_tokens < 1:
            raise ValueError(f"A block has {self.block_tokens} tokens; expected at least 1.")
        if (total := sum(tier.num_blocks for tier in self.tiers)) > MAX_BLOCKS:
            raise ValueError(f"The tiers have {total:,} blocks together; expected at most {MAX_BLOCKS:,}.")
