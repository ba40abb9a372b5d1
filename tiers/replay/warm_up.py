"""Compiles what replays call, or loads it: a small one does everything once. Knows nothing about traces."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tiers.names import Tier
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.replayer import Replayer


@dataclass(frozen=True)
class _Request:
    block_ids: Sequence[Hashable]
    output_block_ids: Sequence[Hashable] = ()
    tenant: str = ""

    @property
    def block_tokens(self) -> Sequence[int]:
        return [1] * len(self.block_ids)

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.block_ids)


def warm_up() -> None:
    """Takes about as long as the engine's own, where nothing is kept yet."""
    replayer = Replayer(ReplayConfig(1, (ReplayTier(Tier.GPU, 3), ReplayTier(Tier.CPU, 3))))
    for blocks in ([1, 2, 3], [4, 5], [1, 2, 3], [1, 2, 3, 4]):
        replayer.serve(_Request(blocks))
    replayer.reuse_counts()
