"""Memory of the books a block, and the time of a look-up, as the cache grows to ten million blocks.

Only the tables, filled as a gpu tier with a quota fills them: prompts of 1,000 blocks whose keys are random, of a
hundred tenants, and that nobody reads any more. The memory is what the process has more after it, not what was asked
for. Takes 2 GB and half a minute.
"""

import time
from collections.abc import Iterable
from statistics import median

import numpy as np
import psutil

from bench.result import Result, compare
from tiers import Tier, TierConfig
from tiers.books import requests
from tiers.books.books import Books
from tiers.books.compiled import Ints32
from tiers.level import Level
from tiers.slots import Slots

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PROMPT_BLOCKS, NUM_LOOKUPS = 1_000, 100
NUM_TENANTS = 100
NO_SLOTS = Slots(0)  # each block keeps its own
MAX_BYTES, MAX_GROWTH = 200, 2.0


def run() -> Iterable[Result]:
    before = psutil.Process().memory_info().rss
    books = Books(1)
    Level(books, 0, TierConfig(Tier.GPU, SIZES[-1], tenant_quota=0.5), 1)
    rng = np.random.default_rng(1)
    seeds: list[int] = []
    first: float | None = None
    for size in SIZES:
        while len(seeds) * PROMPT_BLOCKS < size:
            seeds.append(int(rng.integers(1 << 62)))
            _add(books, _keys(seeds[-1]), len(seeds) - 1)
        seconds = _seconds_a_block(books, [seeds[place] for place in rng.integers(len(seeds), size=NUM_LOOKUPS)])
        first = first or seconds
        yield compare(
            f"look-up in {size:,} blocks",
            ours=seconds * 1e9,
            reference=first * 1e9,
            reference_name=f"in {SIZES[0]:,}",
            unit="ns",
            bar=MAX_GROWTH,
            better="lower",
        )
    yield compare(
        f"memory of {SIZES[-1]:,} blocks' books",
        ours=(psutil.Process().memory_info().rss - before) / SIZES[-1],
        reference=MAX_BYTES,
        reference_name="the bar",
        unit="bytes",
        bar=1.0,
        better="lower",
    )


def _keys(seed: int) -> Ints32:
    """The keys of one prompt, made again when they are needed."""
    keys = np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, (PROMPT_BLOCKS, 4), np.int32)
    return np.frombuffer(keys.tobytes(), np.int32).reshape(-1, 4)


def _add(books: Books, keys: Ints32, number: int) -> None:
    books.reserve(nodes=PROMPT_BLOCKS + 1, copies=PROMPT_BLOCKS)
    slots = np.arange(number * PROMPT_BLOCKS, (number + 1) * PROMPT_BLOCKS)
    pinned, tenant = np.empty(PROMPT_BLOCKS, np.int32), books.tenants.number(f"tenant {number % NUM_TENANTS}")
    requests.register(*books.tables, keys, _keys(0)[0], 0, slots, pinned, tenant)
    requests.release(*books.tables, NO_SLOTS.words, NO_SLOTS.counts, slots, pinned, PROMPT_BLOCKS)


def _seconds_a_block(books: Books, seeds: list[int]) -> float:
    """Each prompt was not asked for since it came, so that its blocks are in no processor's cache."""
    rows, tiers = np.empty(PROMPT_BLOCKS, np.int32), np.empty(PROMPT_BLOCKS, np.int32)
    taken: list[float] = []
    for seed in seeds:
        keys = _keys(seed)
        started_at = time.thread_time()
        num_found = requests.resident_prefix(*books.tables, keys, rows, tiers)
        taken.append(time.thread_time() - started_at)
        assert num_found == PROMPT_BLOCKS, "a block is lost"
    return median(taken) / PROMPT_BLOCKS
