"""What measuring costs: the time spent in counting, as a share of the steps it counts.

While eight requests decode, and while prompts of 512 tokens are computed once and found four times.
"""

import random
import time
from collections.abc import Callable, Iterable
from typing import Any

from bench._real_engine import Heard, ask, load_model, real_engine
from bench.result import Result, compare
from engine.engine import Engine
from engine.loader import LoadedModel
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from engine.stats import EngineStats
from tiers import WriteMode

NUM_REQUESTS = 8
NUM_TOKENS = 48
COUNTING = ("admitted", "asked", "filled", "given_back", "token", "preempted", "finished", "counters")


class Stopwatch:
    """Adds up the seconds spent in the functions that it wraps (its own cost included)."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
                self.calls += 1

        return timed


def run() -> Iterable[Result]:
    loaded = load_model()
    with real_engine(loaded, gpu_blocks=128, mode=WriteMode.WRITE_BACK) as engine:
        ask(engine, "warm-up", [1, 2, 3], 4)
        counting, computing, stepping = Stopwatch(), Stopwatch(), Stopwatch()
        instrument(engine, counting, computing, stepping)
        decode_together(engine)
    share = "of the time of the steps, same run"
    yield compare(
        "measuring, of a decode step of 8 requests",
        ours=counting.seconds * 1000,
        reference=stepping.seconds * 1000,
        reference_name=share,
        unit="ms",
        bar=0.01,
        better="lower",
    )
    yield compare(
        "all bookkeeping, of a decode step of 8 requests",
        ours=(stepping.seconds - computing.seconds) * 1000,
        reference=stepping.seconds * 1000,
        reference_name=share,
        unit="ms",
        bar=0.05,
        better="lower",
    )

    yield _prompts(loaded)


def _prompts(loaded: LoadedModel) -> Result:
    with real_engine(loaded, gpu_blocks=256, mode=WriteMode.WRITE_BACK) as engine:
        ask(engine, "warm-up", [1, 2, 3], 4)
        counting, computing, stepping = Stopwatch(), Stopwatch(), Stopwatch()
        instrument(engine, counting, computing, stepping)
        rng = random.Random(4)
        prompts = [[rng.randrange(1000, 40_000) for _ in range(512)] for _ in range(4)]
        for turn in range(5):
            for number, prompt in enumerate(prompts):
                ask(engine, f"{turn}.{number}", prompt, 1)
            engine.snapshot()
    return compare(
        "measuring, of steps with prompts of 512 tokens",
        ours=counting.seconds * 1000,
        reference=stepping.seconds * 1000,
        reference_name="of the time of the steps, same run",
        unit="ms",
        bar=0.01,
        better="lower",
    )


def instrument(engine: Engine, counting: Stopwatch, computing: Stopwatch, stepping: Stopwatch) -> None:
    stats: EngineStats = engine._stats
    for name in COUNTING:
        setattr(stats, name, counting.around(getattr(stats, name)))
    engine._runner.run = computing.around(engine._runner.run)  # type: ignore[method-assign]  # a stopwatch around it
    step = stepping.around(engine.step)
    engine.step = step  # type: ignore[method-assign]  # as above


def decode_together(engine: Engine) -> None:
    rng = random.Random(3)
    sampling = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
    listeners = [Heard() for _ in range(NUM_REQUESTS)]
    for number, heard in enumerate(listeners):
        prompt = [rng.randrange(1000, 40_000) for _ in range(32)]
        engine.submit(GenerationRequest(f"r{number}", prompt, sampling), heard)
    while not all(heard.is_over.wait(1.0) for heard in listeners):
        engine.snapshot()  # scraped once a second
