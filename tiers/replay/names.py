"""Keys for blocks that a trace calls by numbers or texts. Knows nothing about tokens.

A name stands for a block with everything before it, so keys are chained as those of a prompt's tokens are: the same
name after another beginning is another block, also where a trace is careless.
"""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import cast

import numpy as np

from tiers.books.blake2b import SIGMA, chain
from tiers.books.compiled import Ints32
from tiers.keys import KEY_BYTES, NUM_WORDS

ROOT = np.zeros(NUM_WORDS, np.int32)
_ROOT_WORDS = np.frombuffer(bytes(KEY_BYTES), np.uint32)
_INT64 = range(-(1 << 63), 1 << 63)


def chained(names: Sequence[Hashable]) -> Ints32:
    """int32 [n, 4]: as the tables have keys."""
    digests = np.empty((len(names), NUM_WORDS), np.uint32)
    chain(_ROOT_WORDS, _words(names), NUM_WORDS, digests, SIGMA)
    return digests.view(np.int32)


def _words(names: Sequence[Hashable]) -> Ints32:
    """uint32 [4 · n], 16 bytes a name."""
    if set(map(type, names)) == {int}:
        numbers = np.empty((len(names), 2), np.int64)
        try:
            numbers[:, 0] = cast(Sequence[int], names)
        except OverflowError:
            return _joined(names)
        numbers[:, 1] = numbers[:, 0] >> 63
        return numbers.reshape(-1).view(np.uint32)
    return _joined(names)


def _joined(names: Sequence[Hashable]) -> Ints32:
    return np.frombuffer(bytearray(b"".join(map(_bytes, names))), np.uint32)


def _bytes(name: Hashable) -> bytes:
    """The same for the same name, whatever stands beside it."""
    if isinstance(name, int) and name in _INT64:
        return name.to_bytes(KEY_BYTES, "little", signed=True)
    data, kind = (name, b"bytes") if isinstance(name, bytes) else (str(name).encode("utf-8", "surrogatepass"), b"text")
    return blake2b(data, digest_size=KEY_BYTES, person=kind).digest()
