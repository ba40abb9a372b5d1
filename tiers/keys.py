"""Block keys: a hash of a block's token ids chained to its parent's key. Knows nothing about where blocks lie.

SHA-256, because keys are shared with other processes and tenants: nobody may construct two prompts with one key.
"""

import hashlib
from array import array
from collections.abc import Sequence

BlockKey = bytes
KEY_BYTES = 32


def root_key(*, fingerprint: str, salt: str, block_size: int, dtype: str) -> BlockKey:
    """What the first block of a prompt is chained to: nothing is shared between two different roots."""
    parts = (fingerprint, salt, str(block_size), dtype)
    # Lengths before the parts: no two different tuples give the same bytes.
    return hashlib.sha256(b"".join(f"{len(part.encode())}:{part}".encode() for part in parts)).digest()


def next_key(parent: BlockKey, token_ids: Sequence[int]) -> BlockKey:
    """The key of the block that holds `token_ids` after the block with key `parent`."""
    return hashlib.sha256(parent + array("I", token_ids).tobytes()).digest()


def chain_keys(root: BlockKey, token_ids: Sequence[int], block_size: int) -> list[BlockKey]:
    """Keys of all full blocks of a prompt, in order; a last, partly filled block has none."""
    data = array("I", token_ids).tobytes()
    width = block_size * array("I").itemsize
    keys = []
    for start in range(0, len(data) - width + 1, width):
        root = hashlib.sha256(root + data[start : start + width]).digest()
        keys.append(root)
    return keys
