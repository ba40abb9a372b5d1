"""Block keys: chained hashes of token ids. Knows nothing about where blocks are.

BLAKE2b rather than a faster checksum: equal keys mean equal text, also when somebody chooses prompts to collide.
"""

import json
import struct
from array import array
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from tiers.books.blake2b import DIGEST_BYTES, SIGMA, chain
from tiers.books.compiled import Ints32

BlockKey = bytes
KEY_BYTES = DIGEST_BYTES
NUM_WORDS = KEY_BYTES // 4


def root_key(*, fingerprint: str, salt: str, block_size: int, dtype: str) -> BlockKey:
    """What every chain of one model, tenant and layout starts from: 16 bytes."""
    identity = json.dumps(["tierscope", 1, fingerprint, salt, block_size, dtype]).encode()
    return blake2b(identity, digest_size=KEY_BYTES).digest()


def next_key(parent: BlockKey, token_ids: Sequence[int]) -> BlockKey:
    """The key of the block with these token ids (all of one block) that follows `parent`."""
    return blake2b(parent + np.asarray(token_ids, dtype="<u4").tobytes(), digest_size=KEY_BYTES).digest()


def chain_keys(root: BlockKey, token_ids: Sequence[int], block_size: int) -> list[BlockKey]:
    """Keys of the full blocks of a prompt, first to last; a last block that is not full has none."""
    num_blocks = len(token_ids) // block_size
    # numpy takes three times as long to make an array of a list.
    tokens = np.frombuffer(array("I", token_ids[: num_blocks * block_size]), np.uint32)
    digests = np.empty((num_blocks, NUM_WORDS), np.uint32)
    chain(np.frombuffer(root, np.uint32), tokens, block_size, digests, SIGMA)
    return list(struct.unpack(f"{KEY_BYTES}s" * num_blocks, digests.tobytes()))


def packed(keys: Sequence[BlockKey]) -> Ints32:
    """int32 [n, 4]: keys as the tables have them."""
    return np.frombuffer(b"".join(keys), np.int32).reshape(-1, NUM_WORDS)
