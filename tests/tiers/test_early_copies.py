"""Copies of a long prompt begin while the rest of its blocks are still being asked for."""

import pytest

from tests.tiers.rig import config, keys_of, make_rig
from tiers.lanes import InlineLane

LONG = keys_of(range(7))


def test_a_long_prompt_comes_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = make_rig(config(gpu=8, cpu=8))
    rig.request(LONG, num_blocks=8)
    rig.request(keys_of(range(10, 18)))  # pushes the long one down
    sizes: list[int] = []
    submit = InlineLane.submit

    def counting(lane: InlineLane, batch: list[object]) -> None:
        sizes.append(len(batch))
        submit(lane, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(InlineLane, "submit", counting)
    lease = rig.cache.acquire(LONG, 8, {})
    assert lease is not None
    assert len(sizes) > 2, "all of it waited for the last block"
    rig.settle()
    rig.compute(lease, LONG)
    rig.cache.release(lease)
    rig.cache.check()
    rig.cache.close()
