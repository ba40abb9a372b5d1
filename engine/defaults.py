"""Tier sizes for a machine that nobody has sized yet. Knows nothing about who may change them.

Modest on purpose: the gpu tier holds a few long prompts, so that a newcomer's first minute of traffic already shows
blocks moving through every tier. Whoever runs real traffic gives the sizes, in the admin or by the environment.
"""

from collections.abc import Callable

from tiers import SlabSpec, Tier
from tiers.block_format import stored_bytes

# 136 blocks of 16 tokens: one request of 2,048 tokens with a little beside it (96 MiB for SmolLM2-135M in fp32).
GPU_BLOCKS = 136
CPU_PER_GPU = 2
DISK_PER_GPU = 20
# Our own Valkey is the broker first: what lies in it is saved with it at every stop.
REMOTE_PER_GPU = 2
MAX_REMOTE_BYTES = 256 << 20
# No more than this share of what the machine could give: other things live there, too.
SHARE = 0.25


def default_tier_sizes(slab: SlabSpec, max_bytes: Callable[[Tier], int]) -> dict[Tier, int]:
    """Bytes by tier, whole blocks, for every tier; `max_bytes` says what the machine could give to each."""
    wanted = {
        Tier.GPU: GPU_BLOCKS,
        Tier.CPU: GPU_BLOCKS * CPU_PER_GPU,
        Tier.DISK: GPU_BLOCKS * DISK_PER_GPU,
    }
    sizes = {tier: _whole_blocks(slab, blocks, max_bytes(tier)) for tier, blocks in wanted.items()}
    max_remote_bytes = min(MAX_REMOTE_BYTES, int(max_bytes(Tier.REMOTE) * SHARE))
    remote_blocks = min(GPU_BLOCKS * REMOTE_PER_GPU, max_remote_bytes // stored_bytes(slab))
    return sizes | {Tier.REMOTE: remote_blocks * stored_bytes(slab)}


def _whole_blocks(slab: SlabSpec, wanted_blocks: int, max_bytes: int) -> int:
    return min(wanted_blocks, int(max_bytes * SHARE) // slab.num_bytes) * slab.num_bytes
