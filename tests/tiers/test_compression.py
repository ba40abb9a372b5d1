"""Compressed blocks: what they lose, what they take, and that nobody reads them as something else."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.tiers.rig import ROOT, EndlessMachine
from tests.tiers.valkey import ValkeyServer
from tiers import CacheConfig, Compression, CorruptError, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache
from tiers.block_format import stored_bytes
from tiers.books.header import HEADER_BYTES
from tiers.compression import codec_for
from tiers.disk import DiskStore
from tiers.errors import GoneError
from tiers.remote import RemoteStore
from tiers.store import BlockStore

LAYERS, HEADS, TOKENS, CHANNELS = 2, 3, 4, 8
SHAPE = (LAYERS, 2, HEADS, TOKENS, CHANNELS)
SLAB = SlabSpec(4 * int(np.prod(SHAPE)), "float32", SHAPE)
LOSSY = [compression for compression in Compression if compression is not Compression.NONE]
KEY = b"k" * 16
NUMBERS = arrays(np.float32, SHAPE, elements=st.floats(-(2.0**14), 2.0**14, width=32, allow_subnormal=False))


def there_and_back(compression: Compression, numbers: np.ndarray) -> np.ndarray:
    codec = codec_for(compression, SLAB)
    encoded = codec.encode(memoryview(numbers.tobytes()))
    assert len(encoded) == codec.num_bytes == stored_bytes(SLAB, compression) - HEADER_BYTES
    target = memoryview(bytearray(SLAB.num_bytes))
    landing = codec.landing(target)
    landing[:] = encoded
    codec.decode(landing, target)
    return np.frombuffer(target, np.float32).reshape(SHAPE)


def some_numbers() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(SHAPE, np.float32)


# -- what is lost ------------------------------------------------------------------------------------------------------
@given(NUMBERS)
def test_uncompressed_is_as_it_was(numbers: np.ndarray) -> None:
    assert np.array_equal(there_and_back(Compression.NONE, numbers), numbers)


@given(NUMBERS)
def test_half_precision_rounds_as_torch_does(numbers: np.ndarray) -> None:
    for compression, dtype in ((Compression.FP16, torch.float16), (Compression.BF16, torch.bfloat16)):
        expected = torch.from_numpy(numbers.copy()).to(dtype).to(torch.float32).numpy()
        assert np.array_equal(there_and_back(compression, numbers), expected)


@given(NUMBERS)
def test_int8_is_off_by_half_a_step_of_its_channel_or_token_at_most(numbers: np.ndarray) -> None:
    found = there_and_back(Compression.INT8, numbers)
    for index, axis in ((0, 2), (1, 3)):  # keys have a scale a channel, values one a token
        step = np.abs(numbers[:, index]).max(axis, keepdims=True) / 127
        error = np.abs(found[:, index] - numbers[:, index])
        assert (error <= step * 0.5001 + 1e-30).all()


def test_one_large_channel_of_the_keys_does_not_blur_the_others() -> None:
    numbers = some_numbers()
    numbers[:, 0, :, :, 3] *= 1000
    found = there_and_back(Compression.INT8, numbers)
    others = [channel for channel in range(CHANNELS) if channel != 3]
    assert np.abs(found[:, 0][..., others] - numbers[:, 0][..., others]).max() < 0.02


@pytest.mark.parametrize("compression", LOSSY)
def test_a_block_that_goes_down_again_and_again_does_not_fade(compression: Compression) -> None:
    once = there_and_back(compression, some_numbers())
    often = once
    for _ in range(20):
        often = there_and_back(compression, often)
    assert np.allclose(once, often, rtol=1e-5, atol=0)


def test_what_is_too_large_for_fp16_becomes_its_largest_number() -> None:
    numbers = np.full(SHAPE, 1e9, np.float32)
    numbers[0] = -1e9
    assert set(there_and_back(Compression.FP16, numbers).flat) == {65504.0, -65504.0}


@pytest.mark.parametrize("compression", LOSSY)
def test_zeros_stay_zeros(compression: Compression) -> None:
    assert not there_and_back(compression, np.zeros(SHAPE, np.float32)).any()


def test_sizes_are_half_and_a_quarter_with_its_scales() -> None:
    model = SlabSpec(737_280, "float32", (30, 2, 3, 16, 64))  # SmolLM2-135M
    assert [stored_bytes(model, compression) - HEADER_BYTES for compression in Compression] == [
        737_280, 368_640, 368_640, 213_120,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("compression", "slab", "why"),
    [
        (Compression.FP16, SlabSpec(64, "bfloat16", (32,)), "is for blocks of float32; these are of bfloat16"),
        (Compression.INT8, SlabSpec(64, "uint8", (64,)), "is for blocks of float32"),
        (Compression.INT8, SlabSpec(64, "float32", (16,)), r"these have \(16,\)"),
    ],
)
def test_blocks_that_a_compression_is_not_for_are_refused(compression: Compression, slab: SlabSpec, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        codec_for(compression, slab)


# -- where it is kept --------------------------------------------------------------------------------------------------
Open = Callable[[Compression], BlockStore]


@pytest.fixture(params=["disk", "remote"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, kv_server: ValkeyServer) -> Open:
    def build(compression: Compression) -> BlockStore:
        if request.param == "disk":
            return DiskStore(tmp_path, SLAB, TOKENS, "test", compression)
        store = RemoteStore(kv_server.url, SLAB, TOKENS, "test", compression)
        request.addfinalizer(store.close)
        return store

    return build


def read(store: BlockStore) -> np.ndarray:
    target = memoryview(bytearray(SLAB.num_bytes))
    store.read(KEY, target)
    return np.frombuffer(target, np.float32).reshape(SHAPE)


@pytest.mark.parametrize("compression", LOSSY)
def test_a_store_gives_back_what_the_compression_leaves(open_store: Open, compression: Compression) -> None:
    numbers = some_numbers()
    open_store(compression).write(KEY, ROOT, 0, memoryview(numbers.tobytes()))
    assert np.array_equal(read(open_store(compression)), there_and_back(compression, numbers))


@pytest.mark.parametrize("compression", Compression)
def test_blocks_of_another_compression_are_neither_seen_nor_read_nor_removed(
    open_store: Open, compression: Compression
) -> None:
    store = open_store(compression)
    store.write(KEY, ROOT, 0, memoryview(some_numbers().tobytes()))
    for other in (open_store(each) for each in Compression if each is not compression):
        assert list(other.scan()) == []
        with pytest.raises(GoneError):
            read(other)
        other.remove(KEY)
    assert [entry.key for entry in store.scan()] == [KEY]


def test_a_flipped_bit_of_a_compressed_block_is_noticed(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, SLAB, TOKENS, "test", Compression.INT8)
    store.write(KEY, ROOT, 0, memoryview(some_numbers().tobytes()))
    whole = store.path_of(KEY).read_bytes()
    for position in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        store.path_of(KEY).write_bytes(damaged)
        with pytest.raises(CorruptError):
            read(store)


def test_a_changed_compression_removes_what_the_old_one_left_unless_somebody_uses_it(tmp_path: Path) -> None:
    old, used, strange = (
        DiskStore(tmp_path, SLAB, TOKENS, *args)
        for args in (("test", Compression.FP16), ("test", Compression.BF16), ("another model", Compression.FP16))
    )
    for store in (old, used, strange):
        store.write(KEY, ROOT, 0, memoryview(some_numbers().tobytes()))
    used.lock()
    new = DiskStore(tmp_path, SLAB, TOKENS, "test", Compression.INT8)
    new.lock()
    assert [store.folder.exists() for store in (old, used, strange)] == [False, True, True]
    new.unlock()
    used.unlock()


# -- the tier ----------------------------------------------------------------------------------------------------------
def test_a_compressed_tier_holds_more_blocks_in_the_same_bytes_and_says_so(tmp_path: Path) -> None:
    size = 8 * stored_bytes(SLAB)
    disk = TierConfig(Tier.DISK, size, path=tmp_path, compression=Compression.INT8)
    config = CacheConfig(TOKENS, SLAB, "test", (TierConfig(Tier.GPU, SLAB.num_bytes), disk), 0)
    cache = TieredCache(config, MemoryPool(SLAB, 1), memory=EndlessMachine())
    stats = cache.stats()[Tier.DISK]
    assert stats.block_bytes == stored_bytes(SLAB, Compression.INT8)
    assert stats.capacity_blocks == size // stats.block_bytes > 8
    cache.close()


@pytest.mark.parametrize("tier", [Tier.GPU, Tier.CPU])
def test_memory_is_not_compressed(tier: Tier) -> None:
    with pytest.raises(ValueError, match="cannot be compressed; disk and remote can"):
        TierConfig(tier, 0, compression=Compression.FP16)
