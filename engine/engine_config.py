"""What an engine is configured with besides its model. Knows nothing about how the limits are kept."""

import re
from dataclasses import dataclass
from typing import Literal

from tiers import Tier, TierConfig

Device = Literal["auto", "cpu", "cuda"]
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class EngineConfig:
    """Limits of one engine. `max_num_batched_tokens` is what one step may compute: decodes first, then prefill chunks.

    `min_gpu_tokens` is the floor under which the gpu tier refuses to shrink, whatever runs. `max_tenants` are counted
    by name, `tenants` of them from the start.
    """

    name: str
    tiers: tuple[TierConfig, ...]
    block_size: int = 16
    max_model_len: int = 8192
    max_num_seqs: int = 32
    max_num_batched_tokens: int = 512
    max_num_waiting: int = 1024
    min_gpu_tokens: int = 256
    tenants: tuple[str, ...] = ()
    max_tenants: int = 20

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"The engine's name is {self.name!r}; expected up to 32 of a-z, 0-9 and '-'.")
        for field in ("block_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "max_num_waiting"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}; expected at least 1.")
        if self.max_tenants < 0:
            raise ValueError(f"max_tenants is {self.max_tenants}; expected 0 or more.")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens is {self.max_num_batched_tokens}; expected at least max_num_seqs "
                f"({self.max_num_seqs}), so that every running request decodes in each step."
            )
        if not self.tiers or self.tiers[0].tier is not Tier.GPU:
            raise ValueError("The first tier must be gpu: attention reads from it.")
