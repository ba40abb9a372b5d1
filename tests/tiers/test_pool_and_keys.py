"""The memory pool gives pages back and never moves; keys follow from all that came before; limits read the machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiers import MachineLimits, MemoryPool, SlabSpec, Tier, chain_keys, next_key, root_key
from tiers.landing import Landing
from tiers.slots import Slots

PAGES = SlabSpec(1 << 20, "float32", (512, 512))
ROOT = root_key(fingerprint="f", salt="", block_size=4, dtype="float32")


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss


def test_a_tensor_over_the_pool_sees_its_slots_at_every_size() -> None:
    pool = MemoryPool(PAGES, 2, max_bytes=8 << 20)
    tensor = pool.as_tensor(torch.float32)
    assert tensor.shape == (8, 512, 512)
    pool.resize(8)
    pool.write(7, np.full((512, 512), 3.0, np.float32).tobytes())
    assert tensor[7].min() == tensor[7].max() == 3.0
    tensor[0] = 2.0
    pool.resize(1)
    assert np.frombuffer(pool.read(0), np.float32)[-1] == 2.0
    assert tensor[7].max() == 0.0  # given back, and zero when it is touched again


def test_a_smaller_pool_gives_its_memory_back_at_once() -> None:
    pool = MemoryPool(PAGES, 64)
    for slot in range(64):
        pool.write(slot, b"x" * PAGES.num_bytes)
    before = resident_bytes()
    pool.resize(4)
    assert before - resident_bytes() > 50 << 20


def test_reserving_address_space_costs_no_memory() -> None:
    before = resident_bytes()
    pool = MemoryPool(PAGES)
    assert pool.max_blocks * PAGES.num_bytes > psutil.virtual_memory().total - PAGES.num_bytes
    assert resident_bytes() - before < 8 << 20


def test_a_pool_cannot_grow_past_its_reservation() -> None:
    pool = MemoryPool(PAGES, 2, max_bytes=4 << 20)
    with pytest.raises(MemoryError, match="5 blocks were asked for; 4 "):
        pool.resize(5)


# Bytes, words, and whole lanes that go past the caches.
@given(st.permutations(range(6)), st.integers(0, 6), st.sampled_from([6, 48, 64, 4096]))
def test_many_slots_are_copied_each_to_its_own(targets: list[int], num_pairs: int, num_bytes: int) -> None:
    small = SlabSpec(num_bytes, "uint8", (num_bytes,))
    pool, host, back = MemoryPool(small, 6), MemoryPool(small, 6), MemoryPool(small, 6)
    for slot in range(6):
        pool.write(slot, bytes([slot + 1]) * num_bytes)
    pairs = list(enumerate(targets))[:num_pairs]
    pool.store_many(pairs, host)
    back.load_many([(target, source) for source, target in pairs], host)
    for source, target in pairs:
        assert host.read(target) == back.read(source) == pool.read(source)
    for source, target in list(enumerate(targets))[num_pairs:]:
        assert host.read(target) == back.read(source) == bytes(num_bytes)


class Device(MemoryPool):
    """A pool that is not host memory: `busy` while it is being loaded."""

    is_host_memory = False
    is_busy = False

    def load(self, slot: int, fill: Callable[[memoryview], None]) -> None:
        self.is_busy = True
        super().load(slot, fill)
        self.is_busy = False


def test_a_device_is_not_kept_waiting_for_what_comes_from_elsewhere() -> None:
    device = Device(SlabSpec(64, "uint8", (64,)), 2)
    seen: list[bool] = []

    def fill(portion: slice, targets: Sequence[memoryview]) -> dict[int, Exception]:
        seen.append(device.is_busy)
        targets[0][:] = b"x" * 64
        return {}

    assert not Landing(device, 64).load_many([1], fill)
    assert seen == [False]
    assert device.read(1) == b"x" * 64


# Up to three chunks of 128 bytes a block, cut everywhere: next_key is hashlib's.
@given(tokens=st.lists(st.integers(0, 2**32 - 1), max_size=200), block_size=st.integers(1, 80))
def test_a_chain_of_keys_is_each_key_after_the_other(tokens: list[int], block_size: int) -> None:
    expected, key = [], ROOT
    for start in range(0, len(tokens) - block_size + 1, block_size):
        key = next_key(key, tokens[start : start + block_size])
        expected.append(key)
    assert chain_keys(ROOT, tokens, block_size) == expected


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_keys_are_equal_only_after_equal_tokens(one: list[int], other: list[int]) -> None:
    for first, second, end in zip(chain_keys(ROOT, one, 2), chain_keys(ROOT, other, 2), (2, 4, 6, 8), strict=True):
        assert (first == second) == (one[:end] == other[:end])


def test_another_model_tenant_block_size_or_dtype_shares_no_key() -> None:
    keys = [
        ROOT,
        root_key(fingerprint="g", salt="", block_size=4, dtype="float32"),
        root_key(fingerprint="f", salt="s", block_size=4, dtype="float32"),
        root_key(fingerprint="f", salt="", block_size=8, dtype="float32"),
        root_key(fingerprint="f", salt="", block_size=4, dtype="bfloat16"),
    ]
    assert len(set(keys)) == len(keys)


def test_limits_leave_a_reserve_and_count_what_is_held_already(tmp_path: Path) -> None:
    limits = MachineLimits(tmp_path)
    assert 0 < limits.max_bytes(Tier.CPU) < psutil.virtual_memory().total
    assert limits.max_bytes(Tier.DISK, held_bytes=1 << 40) > 1 << 40
    assert limits.max_bytes(Tier.DISK, path=tmp_path / "not" / "there" / "yet") > 0
    assert all(limits.why(tier) for tier in Tier)


@given(st.lists(st.tuples(st.sampled_from(["take", "give", "limit", "grow", "trim"]), st.integers(0, 9))))
def test_slots_are_given_once_and_lowest_first(actions: list[tuple[str, int]]) -> None:
    slots, used = Slots(4), set[int]()
    for name, number in actions:
        if name == "take":
            slot = slots.take()
            assert (slot is None) == (len(used) >= slots.limit or used.issuperset(range(slots.limit)))
            if slot is not None:
                assert slot == min(set(range(slots.limit)) - used)
                used.add(slot)
        elif name == "give" and used:
            slots.give(used.pop())
        elif name == "limit" and number <= slots.num_total:
            slots.set_limit(number)
        elif name == "grow" and number >= slots.num_total:
            slots.grow(number)
            slots.set_limit(number)
        elif name == "trim" and slots.is_settled:
            assert all(slot < slots.limit for slot in used)
            slots.trim()
        slots.check(used)
