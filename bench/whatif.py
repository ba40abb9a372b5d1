"""The whole hit-rate curve of a trace in one pass, against a sweep of one LRU over 30 sizes; parsing excluded.

And the sampled curve, as a running engine has it, against the exact one: its error, time and memory. It may take twice
the time: what it is for is that its memory does not follow the blocks.

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
from typing import Any, TypeVar

import numpy as np

from bench.result import Result, compare
from tiers.whatif import Accesses, HitCurve, TouchOrder, read_trace, stack_positions
from tiers.whatif.accesses import uniform
from tiers.whatif.shards import SampledStack
from tiers.whatif.shards_buckets import CapacityBuckets
from tiers.whatif.shards_trace import hashed, sampled_hits, trace_stack
from tiers.whatif.stack import CHUNK_ACCESSES, RecencyStack

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
NUM_SIZES = 30
ROUNDS = 5
BAR = 1 / 20
STREAMED_ACCESSES, STREAMED_BLOCKS = 10_000_000, 1_000_000
SAMPLE_RATE = 0.01
SAMPLED_ACCESSES, SAMPLED_BLOCKS = 100_000_000, 50_000_000
MEMORY_BYTES = 16 << 20


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
    yield from _sampled(accesses)
    yield from _sampled_stream()


def _sampled(accesses: Accesses) -> Iterable[Result]:
    exact_seconds, (exact, _) = min((_timed(lambda: _both(accesses)) for _ in range(ROUNDS)), key=lambda pair: pair[0])
    sizes: list[int | None] = np.geomspace(100, accesses.num_unique, NUM_SIZES).astype(int).tolist()
    found = [_timed(lambda: sampled_hits(accesses, trace_stack(SAMPLE_RATE))[0]) for _ in range(ROUNDS)]
    seconds, sampled = min(found, key=lambda pair: pair[0])
    errors = np.array(sampled.rates(sizes)) - np.array(exact.at(sizes)) / exact.total
    yield compare(
        f"largest error of {SAMPLE_RATE:.0%} below the newest, at {NUM_SIZES} sizes",
        ours=float(abs(errors).max()) * 100,
        reference=1.0,
        reference_name="a point",
        unit="points",
        bar=1.0,
        better="lower",
    )
    yield compare(
        f"sampled curves by blocks and tokens, {accesses.num_accesses:,} accesses",
        ours=seconds * 1000,
        reference=exact_seconds * 1000,
        reference_name="the exact curves by blocks and tokens",
        unit="ms",
        bar=2.0,
        better="lower",
    )


def _sampled_stream() -> Iterable[Result]:
    """As an engine counts: a request a block, half of them new, never in memory together."""
    stack, buckets, rng = SampledStack(), CapacityBuckets(16), np.random.default_rng(2)
    exact = RecencyStack(SAMPLED_BLOCKS)
    starts = np.arange(CHUNK_ACCESSES + 1, dtype=np.int64)
    ours = theirs = 0.0
    num_done = num_exact = 0
    while num_done < SAMPLED_ACCESSES:
        blocks = (rng.random(CHUNK_ACCESSES) ** 4 * SAMPLED_BLOCKS).astype(np.int64)
        keys = hashed(blocks)
        started_at = time.perf_counter()
        first = 0
        while first < CHUNK_ACCESSES:
            found, num_requests = stack.access(keys[first:], starts[: CHUNK_ACCESSES - first + 1])
            buckets.add(found, stack.rate, 0)
            first += num_requests
        buckets.counts()
        ours += time.perf_counter() - started_at
        num_done += CHUNK_ACCESSES
        if num_exact < STREAMED_ACCESSES:
            started_at = time.perf_counter()
            exact.access(blocks, starts, TouchOrder.TAIL)
            theirs += time.perf_counter() - started_at
            num_exact += CHUNK_ACCESSES
    stack.check()
    yield compare(
        f"a sampled access of {num_done:,} among {SAMPLED_BLOCKS:,} blocks",
        ours=ours / num_done * 1e6,
        reference=theirs / num_exact * 1e6,
        reference_name=f"an exact one, the first {num_exact:,}",
        unit="µs",
        bar=2.0,
        better="lower",
    )
    yield compare(
        "memory of the live curve",
        ours=stack.num_bytes / (1 << 20),
        reference=MEMORY_BYTES / (1 << 20),
        reference_name="the bound",
        unit="MiB",
        bar=1.0,
        better="lower",
    )


T = TypeVar("T")


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    started_at = time.perf_counter()
    result = call()
    return time.perf_counter() - started_at, result


def _both(accesses: Accesses) -> tuple[HitCurve, HitCurve]:
    positions, blocks, tokens = stack_positions(accesses), HitCurve(), HitCurve()
    blocks.add(positions)
    tokens.add(positions, accesses.num_tokens)
    return blocks, tokens


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
