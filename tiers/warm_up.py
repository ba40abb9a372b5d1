"""Compiles what is compiled, or loads it, before anybody waits: a small cache does everything once.

Takes half a minute where nothing is kept yet, else less than a second. Knows nothing about engines.
"""

import logging
import os
import socket
import time
from contextlib import suppress
from functools import cache

import numpy as np

from tiers.block_format import Layout
from tiers.block_reads import BlockFiles, BlockReads
from tiers.books import orders, steps
from tiers.books.books import Books
from tiers.books.header import HEADER_BYTES
from tiers.books.xxh3 import new_state
from tiers.cache import TieredCache
from tiers.config import CacheConfig, SlabSpec, TierConfig
from tiers.errors import CorruptError
from tiers.keys import KEY_BYTES, chain_keys
from tiers.level import Level
from tiers.limits import MachineLimits
from tiers.names import Compression, Policy, Tier, WriteMode
from tiers.node import ensure, find, oldest_first
from tiers.pool import MemoryPool
from tiers.remote_values import take
from tiers.whatif.shards_curve import ReuseCurve

SLAB = SlabSpec(1, "uint8", (1,))
ROOT = bytes(KEY_BYTES)
# One that leaves gpu, one that is found, one that comes back from cpu, one that pushes others out of both.
PROMPTS = ((1, 1, 1), (2, 2, 2), (2, 2, 2), (1, 1, 1), (3, 3, 3), (1, 1, 1))

log = logging.getLogger(__name__)


@cache
def warm_up() -> None:
    """Once a process."""
    started_at = time.perf_counter()
    for cpu, mode in ((0, WriteMode.WRITE_BACK), (3, WriteMode.WRITE_BACK), (3, WriteMode.WRITE_THROUGH)):
        tiers = (TierConfig(Tier.GPU, 3, mode), TierConfig(Tier.CPU, cpu, mode))
        books = TieredCache(CacheConfig(1, SLAB, "warm-up", tiers, 0), MemoryPool(SLAB, 3), memory=MachineLimits())
        for prompt in PROMPTS:
            _request(books, prompt)
        books.configure(Tier.GPU, policy=Policy.ARC)
        books.resize(Tier.GPU, 2)
        books.clear(Tier.GPU)
        books.close()
    _seldom()
    _copies()
    _reuse_curve()
    log.info("the books' code took %.1f s", time.perf_counter() - started_at)


def _seldom() -> None:
    """What happens at a resize, a restart or a look at a server."""
    books = Books(1)
    level = Level(books, 0, TierConfig(Tier.GPU, 2), 1)
    first = ensure(books, bytes([1] * KEY_BYTES), ROOT, 0)
    copy = level.add(first, Tier.GPU)
    steps.touch_all(*books.tables, first.row)
    level.eviction.surplus()
    level.eviction.hold(copy)
    assert not level.keeps_hits
    assert find(books, first.key) in oldest_first([first])
    first.descendants()
    orders.take_notes(*books.tables, 0)
    steps.refill(books.tables.places, np.zeros(2 * len(books.tables.places), np.int64))


def _copies() -> None:
    """Of slabs in words (those above are of bytes), of files, and of a server's values."""
    for num_bytes in (8, 64):
        pools = [MemoryPool(SlabSpec(num_bytes, "uint8", (num_bytes,)), 1) for _ in range(2)]
        pools[0].load_many([(0, 0)], pools[1])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"-")
        buffer, target = (memoryview(bytearray(8)) for _ in range(2))
        take(ours, buffer, np.zeros(2, np.int64), b"$", [target], 1, 1.0, new_state())
    layout = Layout.of(SLAB, 1, "warm-up", Compression.NONE)
    files = BlockFiles(layout, 8, lambda key: f"{os.devnull}/00/{key.hex()}", "")
    assert not list(BlockReads(files, [ROOT]).each(pools[0].read))
    with suppress(CorruptError):
        layout.verify(bytes(HEADER_BYTES), ROOT, bytes(16))


def _reuse_curve() -> None:
    curve = ReuseCurve(1, max_blocks=8)
    for prompt in PROMPTS:
        keys = chain_keys(ROOT, prompt, 1)
        curve.ask(keys, len(keys))
        curve.touch(keys)


def _request(books: TieredCache, prompt: tuple[int, ...]) -> None:
    keys = chain_keys(ROOT, prompt, 1)
    lease = books.acquire(keys, len(keys), {})
    assert lease is not None
    while books.poll() or books.num_transfers:
        pass
    first = len(lease.hit_tiers)
    books.register(lease, first, keys[first:], keys[first - 1] if first else ROOT)
    books.release(lease)
