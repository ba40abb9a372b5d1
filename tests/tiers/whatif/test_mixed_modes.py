"""A hierarchy whose tiers are written to in different ways is cut out of one stack as the real tiers do it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers.rig import EndlessMachine
from tests.tiers.whatif.test_stack_positions import SLAB, _request, prompts
from tiers import CacheConfig, MemoryPool, Tier, TierConfig, TieredCache, WriteMode
from tiers.block_format import stored_bytes
from tiers.whatif import HitCurve, stack_positions
from tiers.whatif.accesses import uniform
from tiers.whatif.binned import depths

BACK, THROUGH = WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH


@settings(max_examples=25)
@given(prompts, st.integers(1, 5), st.integers(0, 9), st.integers(0, 25))
def test_copies_below_exclusive_tiers(requests: list[list[str]], spare: int, cpu: int, disk: int) -> None:
    """As an engine starts with them: the shared tier is written through, the others back."""
    served, predicted = both(requests, max(map(len, requests)) + spare, cpu, disk, (BACK, BACK, THROUGH))
    assert served == predicted


def both(
    requests: list[list[str]], gpu: int, cpu: int, disk: int, modes: tuple[WriteMode, WriteMode, WriteMode]
) -> tuple[list[int], list[int]]:
    """Blocks served by tier: by the real tiers, and as predicted."""
    with TemporaryDirectory() as folder:
        tiers = (
            TierConfig(Tier.GPU, gpu, modes[0]),
            TierConfig(Tier.CPU, cpu, modes[1]),
            TierConfig(Tier.DISK, disk * stored_bytes(SLAB), modes[2], path=Path(folder)),
        )
        cache = TieredCache(CacheConfig(1, SLAB, "whatif", tiers, 0), MemoryPool(SLAB, gpu), memory=EndlessMachine())
        served = {Tier.GPU: 0, Tier.CPU: 0, Tier.DISK: 0}
        try:
            for blocks in requests:
                for tier in _request(cache, [block.ljust(16).encode() for block in blocks]):
                    served[tier] += 1
            cache.check()
        finally:
            cache.close()
    curve = HitCurve()
    curve.add(stack_positions(uniform(requests)))
    spans = depths([gpu, cpu, disk], modes)
    return list(served.values()), [curve.hits(end) - curve.hits(start) for start, end in spans]
