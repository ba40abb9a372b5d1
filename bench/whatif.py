"""The whole hit-rate curve of a trace in one pass, against a sweep of one LRU over 30 sizes; parsing excluded.

The sweep is LMCache's own (`lmcache.tools.cache_simulator`, fast mode) where that package is installed, else the same
OrderedDict loop without its statistics, which is a little faster. Both must give the same hits at all 30 sizes.
"""

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.result import Result, compare
from tiers.whatif import Accesses, HitCurve, TouchOrder, read_trace, stack_positions
from tiers.whatif.accesses import uniform
from tiers.whatif.stack import CHUNK_ACCESSES, RecencyStack

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
NUM_SIZES = 30
ROUNDS = 5
BAR = 1 / 20
STREAMED_ACCESSES, STREAMED_BLOCKS = 10_000_000, 1_000_000


def run() -> Iterable[Result]:
    accesses = read_trace(TRACE) if TRACE.exists() else _synthetic()
    requests = np.split(accesses.block_ids, accesses.starts[1:-1])
    blocks = [request.tolist() for request in requests]
    sizes = np.geomspace(100, accesses.num_unique, NUM_SIZES).astype(int).tolist()
    name, sweep = _peer(blocks)
    _curve(accesses)  # numba compiles
    started_at = time.perf_counter()
    expected = [sweep(size) for size in sizes]
    theirs = time.perf_counter() - started_at
    ours, curve = min((_timed(lambda: _curve(accesses)) for _ in range(ROUNDS)), key=lambda pair: pair[0])
    if curve.at(sizes) != expected:
        raise RuntimeError(f"the curve says {curve.at(sizes)}, {name} {expected}")
    yield compare(
        f"hit-rate curve at every size, {accesses.num_accesses:,} accesses",
        ours=ours * 1000,
        reference=theirs * 1000,
        reference_name=name,
        unit="ms",
        bar=BAR,
        better="lower",
    )
    yield _streamed()


def _timed(call: Callable[[], HitCurve]) -> tuple[float, HitCurve]:
    started_at = time.perf_counter()
    result = call()
    return time.perf_counter() - started_at, result


def _curve(accesses: Accesses) -> HitCurve:
    curve = HitCurve()
    curve.add(stack_positions(accesses, TouchOrder.HEAD))
    return curve


def _streamed() -> Result:
    """Ten million accesses that are never in memory together; every size at once may cost no more than one size."""
    stack, curve = RecencyStack(), HitCurve()
    rng = np.random.default_rng(1)
    ours = theirs = 0.0
    cached: OrderedDict[int, None] = OrderedDict()
    for _ in range(STREAMED_ACCESSES // CHUNK_ACCESSES):
        blocks = (rng.zipf(1.2, CHUNK_ACCESSES) % STREAMED_BLOCKS).astype(np.int64)
        starts = np.arange(CHUNK_ACCESSES + 1, dtype=np.int64)
        started_at = time.perf_counter()
        curve.add(stack.access(blocks, starts, TouchOrder.TAIL))
        ours += time.perf_counter() - started_at
        requests = [[block] for block in blocks.tolist()]
        started_at = time.perf_counter()
        _lru_hits(requests, STREAMED_BLOCKS // 10, cached)
        theirs += time.perf_counter() - started_at
    return compare(
        f"a streamed access among {STREAMED_BLOCKS:,} blocks",
        ours=ours / curve.total * 1e6,
        reference=theirs / curve.total * 1e6,
        reference_name="one OrderedDict LRU at one size",
        unit="µs",
        bar=1.0,
        better="lower",
    )


def _peer(requests: Sequence[list[int]]) -> tuple[str, Callable[[int], int]]:
    if find_spec("lmcache") is None or find_spec("sortedcontainers") is None:
        return f"one OrderedDict LRU at {NUM_SIZES} sizes", lambda size: _lru_hits(requests, size, OrderedDict())
    simulate = import_module("lmcache.tools.cache_simulator.simulator").simulate

    events: list[dict[str, Any]] = [
        {"timestamp": 0.0, "chunk_hashes": each, "seq_len": len(each), "chunk_size": 1} for each in requests
    ]

    def hits(size: int) -> int:
        return int(simulate(events, size, kv_bytes_per_chunk=1, fast=True)["total_hit_tokens"])

    return f"LMCache's simulator at {NUM_SIZES} sizes", hits


def _lru_hits(requests: Iterable[list[int]], capacity: int, cached: OrderedDict[int, None]) -> int:
    hits = 0
    for blocks in requests:
        num_found = next((n for n, block in enumerate(blocks) if block not in cached), len(blocks))
        hits += num_found
        for block in blocks:
            if block in cached:
                cached.move_to_end(block)
                continue
            if len(cached) >= capacity:
                cached.popitem(last=False)
            cached[block] = None
    return hits


def _synthetic() -> Accesses:
    """Where the trace is not there: conversations that grow turn by turn over a few system prompts."""
    return uniform(list(_turns(random.Random(1))))


def _turns(rng: random.Random) -> Iterator[list[tuple[int, int]]]:
    for _ in range(12_000):
        chat = rng.randrange(4_000)
        shared, own = rng.randrange(1, 8), rng.randrange(1, 35)
        yield [(chat % 5, n) for n in range(shared)] + [(chat + 10, n) for n in range(own)]
