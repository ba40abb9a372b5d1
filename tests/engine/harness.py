"""A tiny engine over the mock runner and real tiers, stepped by hand, with what its requests said collected.

Knows nothing about threads: every test that uses it is deterministic but for copies, which it waits for.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.engine import Engine
from engine.engine_config import EngineConfig
from engine.request import CacheUse, Event, FinishedEvent, GenerationRequest, TokenEvent, Usage
from engine.sampling import SamplingParams
from tests.engine.mock_runner import STATE_BYTES, MockRunner
from tiers import CacheConfig, MachineLimits, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache, WriteMode
from tiers.block_format import stored_bytes

BLOCK_SIZE = 4
BLOCK_BYTES = BLOCK_SIZE * STATE_BYTES
SLAB = SlabSpec(BLOCK_BYTES, "uint64", (BLOCK_SIZE,))


def tier_bytes(tier: Tier, num_blocks: int) -> int:
    """What a tier needs to hold so many blocks: on disk each has a header, too."""
    return num_blocks * (stored_bytes(SLAB) if tier is Tier.DISK else BLOCK_BYTES)


class FakeClock:
    """Seconds that pass only when told to, or by `tick` at each reading."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now = 1000.0
        self._tick = tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now


@dataclass
class Answer:
    """All that a request's listener heard."""

    tokens: list[int] = field(default_factory=list)
    finished: list[FinishedEvent] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        assert not self.finished, "an event came after the last one"
        if isinstance(event, TokenEvent):
            self.tokens += event.token_ids
        else:
            self.finished.append(event)

    @property
    def reason(self) -> str | None:
        return self.finished[0].finish_reason if self.finished else None

    @property
    def error(self) -> str | None:
        return self.finished[0].error

    @property
    def usage(self) -> Usage:
        return self.finished[0].usage


@dataclass
class Rig:
    """The engine and its parts."""

    engine: Engine
    cache: TieredCache
    runner: MockRunner
    clock: Callable[[], float]

    def submit(
        self,
        request_id: str,
        prompt: Sequence[int],
        max_tokens: int = 3,
        *,
        salt: str = "",
        cache: CacheUse = "on",
        tenant: str = "",
        ignore_eos: bool = False,
    ) -> Answer:
        sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=ignore_eos)
        answer = Answer()
        self.engine.submit(GenerationRequest(request_id, list(prompt), sampling, salt, cache, tenant), answer)
        return answer

    def step(self) -> bool:
        has_moved = self.engine.step()
        self.engine.check()
        return has_moved

    def run(self, *answers: Answer, max_seconds: float = 20.0) -> None:
        """Step until these (or with none given: all) requests have ended and copies have settled."""
        deadline = time.monotonic() + max_seconds
        while True:
            has_moved = self.step()
            if answers and all(answer.finished for answer in answers):
                return
            if not has_moved:
                if not answers and not self.engine.num_unfinished and not self.cache.num_transfers:
                    return
                assert time.monotonic() < deadline, "the engine stalls"
                time.sleep(0.0005)

    def ask(self, request_id: str, prompt: Sequence[int], max_tokens: int = 3) -> Answer:
        """One request alone, from start to end, until all copies that it caused have settled."""
        answer = self.submit(request_id, prompt, max_tokens)
        self.run()
        return answer

    def close(self) -> None:
        self.engine.stop()


def make_rig(
    *,
    gpu: int = 16,
    cpu: int = 0,
    disk: int = 0,
    path: Path | None = None,
    mode: WriteMode = WriteMode.WRITE_BACK,
    max_model_len: int = 256,
    max_num_seqs: int = 8,
    max_num_batched_tokens: int = 16,
    max_num_waiting: int = 64,
    eos_ids: frozenset[int] = frozenset(),
    clock: Callable[[], float] | None = None,
    num_transfer_threads: int = 0,
    tenants: tuple[str, ...] = (),
    max_tenants: int = 20,
) -> Rig:
    """Sizes in blocks of four tokens. Without transfer threads copies are made inside `poll()`: the same every time."""
    tiers = (
        TierConfig(Tier.GPU, gpu * BLOCK_BYTES, write_mode=mode),
        TierConfig(Tier.CPU, cpu * BLOCK_BYTES, write_mode=mode),
        *([TierConfig(Tier.DISK, tier_bytes(Tier.DISK, disk), write_mode=mode, path=path)] if path else []),
    )
    clock = clock or FakeClock(tick=0.001)
    pool = MemoryPool(SLAB, gpu)
    cache_config = CacheConfig(BLOCK_SIZE, SLAB, "mock", tiers, num_transfer_threads=num_transfer_threads)
    cache = TieredCache(cache_config, pool, clock=clock, memory=MachineLimits())
    runner = MockRunner(pool, BLOCK_SIZE)
    config = EngineConfig(
        "test",
        tiers,
        block_size=BLOCK_SIZE,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_waiting=max_num_waiting,
        min_gpu_tokens=BLOCK_SIZE,
        tenants=tenants,
        max_tenants=max_tenants,
    )
    return Rig(Engine(config, runner, cache, eos_ids=eos_ids, clock=clock), cache, runner, clock)
