"""The compiled checksum is the package's own: what one wrote the other reads."""

import random

import numpy as np
import pytest
import xxhash

from tiers.books.compiled import Words, aside
from tiers.books.xxh3 import xxh3_128


@aside
def _digest(data: Words, digest: Words) -> None:
    low, high = xxh3_128(data.ctypes.data, len(data))
    digest[0], digest[1] = high, low


# Each of them goes another way through the algorithm.
@pytest.mark.parametrize("num_bytes", [0, 1, 8, 16, 128, 240, 241, 1024, 1025, 737_280, 737_281])
def test_compiled_code_gets_the_digest_that_the_package_gives(num_bytes: int) -> None:
    data, digest = random.Random(num_bytes).randbytes(num_bytes), np.zeros(2, np.uint64)
    _digest(np.frombuffer(data, np.uint8), digest)
    assert digest.astype(">u8").tobytes() == xxhash.xxh3_128_digest(data)
