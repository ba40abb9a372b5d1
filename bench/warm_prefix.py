"""What a prefix of 1,024 tokens is worth when it lies in gpu, cpu or disk: time to first token, warm against cold.

The disk tier's files were just written, so the operating system may still hold them in memory; the first read after
a restart of the machine is as fast as the disk is.
"""

import random
from collections.abc import Iterable
from statistics import median

from bench._real_engine import ask, load_model, real_engine
from bench.result import Result, compare
from engine.engine import Engine
from tiers import Tier, WriteMode

PREFIX_TOKENS = 1024
SUFFIX_TOKENS = 8
ROUNDS = 3
BARS = {Tier.GPU: 1 / 15, Tier.CPU: 1 / 12, Tier.DISK: 1 / 8}
FASTER = {Tier.GPU: (), Tier.CPU: (Tier.GPU,), Tier.DISK: (Tier.GPU, Tier.CPU)}


def run() -> Iterable[Result]:
    loaded = load_model()
    rng = random.Random(1)
    cold: list[float] = []
    warm: dict[Tier, list[float]] = {tier: [] for tier in BARS}
    with real_engine(loaded, gpu_blocks=96, cpu_blocks=96, disk_blocks=512, mode=WriteMode.WRITE_THROUGH) as engine:
        ttft(engine, "warm-up", tokens(rng, PREFIX_TOKENS), None)
        for number in range(ROUNDS):
            prefix = tokens(rng, PREFIX_TOKENS)
            cold.append(ttft(engine, f"cold {number}", [*prefix, *tokens(rng, SUFFIX_TOKENS)], None))
            for tier, seconds in warm.items():
                for faster in FASTER[tier]:
                    engine.clear(faster).result(60)
                seconds.append(ttft(engine, f"{tier} {number}", [*prefix, *tokens(rng, SUFFIX_TOKENS)], tier))
    for tier, seconds in warm.items():
        yield compare(
            f"warm 1,024-token prefix from {tier}: TTFT",
            ours=median(seconds) * 1000,
            reference=median(cold) * 1000,
            reference_name="cold, same run",
            unit="ms",
            bar=BARS[tier],
            better="lower",
        )


def ttft(engine: Engine, request_id: str, prompt: list[int], tier: Tier | None) -> float:
    """Seconds to the first token of a request whose prefix must come from `tier` (None: from nowhere)."""
    finished = ask(engine, request_id, prompt, 1).finished
    assert finished is not None
    usage = finished.usage
    expected = PREFIX_TOKENS if tier else 0
    if sum(usage.hit_tokens.values()) != expected or usage.slowest_tier is not tier:
        raise RuntimeError(f"{request_id}: expected {expected} tokens from {tier}, got {usage.hit_tokens}")
    assert usage.ttft_seconds is not None
    return usage.ttft_seconds


def tokens(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(1000, 40_000) for _ in range(count)]
