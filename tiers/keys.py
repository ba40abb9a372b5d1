"""Block keys: chained hashes of token ids. Knows nothing about where blocks are.

BLAKE2b rather than a faster checksum: equal keys mean equal text, also when somebody chooses prompts to collide.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np

BlockKey = bytes
KEY_BYTES = 16


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
    data = np.asarray(token_ids[: num_blocks * block_size], dtype="<u4").tobytes()
    keys: list[BlockKey] = []
    key = root
    for start, end in pairwise(range(0, len(data) + 1, block_size * 4)):
        key = blake2b(key + data[start:end], digest_size=KEY_BYTES).digest()
        keys.append(key)
    return keys
