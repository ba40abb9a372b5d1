"""A fixed workload of token ids, and the split by tier that exact accounting must give it. No product code in here.

Write-back tiers under sequential requests are one LRU stack cut into pieces: a block at depth d lies in gpu where d is
below its size, else in cpu, and so on (tests/tiers holds the full oracle; this is a second one, short on purpose). A
last tier that writes through holds the top of the same stack: its piece begins where those above it end.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

BLOCK_SIZE = 16
BLOCK_BYTES = 737_280  # SmolLM2-135M: 2 · 30 layers · 16 tokens · 3 heads · 64 · 4 bytes
FILE_BYTES = BLOCK_BYTES + 256
Key = tuple[int, ...]


def sizes_in_env(sizes: dict[str, int]) -> dict[str, str]:
    """Blocks of gpu, cpu and disk as variables. One gpu block more than the oracle knows: the tail of a prompt that is
    no full block takes it.
    """
    return {
        "TIERSCOPE_GPU_BYTES": str((sizes["gpu"] + 1) * BLOCK_BYTES),
        "TIERSCOPE_CPU_BYTES": str(sizes["cpu"] * BLOCK_BYTES),
        "TIERSCOPE_DISK_BYTES": str(sizes["disk"] * FILE_BYTES),
    }


@dataclass
class StackOracle:
    """Blocks by recency, the newest first; `sizes` are the tiers' sizes in blocks, fastest first."""

    sizes: dict[str, int]
    stack: list[Key] = field(default_factory=list)

    def request(self, prompt: list[int]) -> Counter[str]:
        """Tokens of `prompt` by origin: a tier, or "computed"."""
        keys = [tuple(prompt[:end]) for end in range(BLOCK_SIZE, len(prompt) + 1, BLOCK_SIZE)]
        split: Counter[str] = Counter()
        for key in keys[: (len(prompt) - 1) // BLOCK_SIZE]:
            if key not in self.stack:
                break
            split[self._tier(self.stack.index(key))] += BLOCK_SIZE
        split["computed"] = len(prompt) - split.total()
        self.stack = keys + [key for key in self.stack if key not in keys]
        del self.stack[sum(self.sizes.values()) :]
        return split

    def _tier(self, depth: int) -> str:
        for tier, size in self.sizes.items():
            if depth < size:
                return tier
            depth -= size
        raise AssertionError("deeper than all tiers")


def conversations(seed: int, num_requests: int, vocabulary: int = 40_000) -> list[list[int]]:
    """Prompts that share system prompts and grow turn by turn; each ends one token after a full block."""
    random_ids = random.Random(seed)

    def ids(num_blocks: int) -> list[int]:
        return [random_ids.randrange(1000, vocabulary) for _ in range(num_blocks * BLOCK_SIZE)]

    systems = [ids(3) for _ in range(3)]
    talks = [list(random_ids.choice(systems)) for _ in range(16)]
    prompts = []
    for _ in range(num_requests):
        talk = random_ids.randrange(len(talks))
        talks[talk] += ids(random_ids.randrange(1, 4))
        if len(talks[talk]) > 14 * BLOCK_SIZE:
            talks[talk] = list(random_ids.choice(systems)) + ids(1)
        prompts.append([*talks[talk], 7])
    return prompts
