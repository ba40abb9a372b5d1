"""vLLM's own bookkeeping of a request's blocks, where its package is installed. Knows nothing about ours."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

GROUP = 0


def vllm_requests(num_blocks: int, block_size: int) -> tuple[str, Callable[[Sequence[int]], int]] | None:
    """A name, and a function that takes a prompt through hash, match, allocate, register, free; None without vLLM.

    The function returns how many blocks it found.
    """
    try:
        from vllm.utils.hashing import sha256
        from vllm.v1.core import kv_cache_utils
        from vllm.v1.core.block_pool import BlockPool
    except ImportError:
        return None
    kv_cache_utils.init_none_hash(sha256)
    pool: Any = BlockPool(num_blocks + 1, True, block_size)  # one is its null block

    def request(token_ids: Sequence[int]) -> int:
        hashes: list[bytes] = []
        before = None
        for start in range(0, len(token_ids) - block_size + 1, block_size):
            before = kv_cache_utils.hash_block_tokens(sha256, before, token_ids[start : start + block_size])
            hashes.append(before)
        found: list[Any] = []
        for key in hashes:
            blocks = pool.get_cached_block(key, [GROUP])
            if blocks is None:
                break
            found += blocks
        pool.touch(found)
        blocks = found + pool.get_new_blocks(len(hashes) - len(found))
        told = SimpleNamespace(block_hashes=hashes)
        pool.cache_full_blocks(told, blocks, len(found), len(hashes), block_size, GROUP)
        pool.free_blocks(reversed(blocks))
        return len(found)

    return "vLLM's block pool", request
