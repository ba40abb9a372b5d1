"""What storing costs the others: decode steps of eight streams while every block goes to cpu, disk and remote at once.

Each stream's prompt fills eight blocks and its answer another each 16 tokens; the reference is the same engine without
slower tiers. Both decode the same streams at once, in turns of 16 steps, so that whatever else the machine does hits
both; what is still to be stored after a turn is waited for, and that counts. A round has a ratio of its own.

The tiers are full before it counts, as they are when an engine has run for a while: each block stored pushes another
out. Until then each takes memory that nothing has used yet, which a virtual machine first gets from its host: 1.7 ms a
block instead of 0.02.
"""

import random
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench._real_engine import Heard, load_model, stepped_engine
from bench.result import Result, compare
from engine.engine import Engine
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from tests.tiers.valkey import ValkeyServer
from tiers import WriteMode

NUM_STREAMS = 8
PROMPT_TOKENS = 128
STEPS_A_TURN = 16
TURNS = 3
NEW_TOKENS = TURNS * STEPS_A_TURN + 2
ROUNDS = 9
ROUNDS_TO_FILL = 3
BLOCKS = NUM_STREAMS * (PROMPT_TOKENS + NEW_TOKENS) // 16
MODE = WriteMode.WRITE_THROUGH


def run() -> Iterable[Result]:
    loaded = load_model()
    with ExitStack() as stack:
        server = ValkeyServer(Path(stack.enter_context(tempfile.TemporaryDirectory()))).start()
        stack.callback(server.kill)
        lower = dict.fromkeys(("cpu_blocks", "disk_blocks", "remote_blocks"), 2 * BLOCKS)
        engines = {
            "with": stack.enter_context(
                stepped_engine(loaded, gpu_blocks=2 * BLOCKS, mode=MODE, url=server.url, **lower)
            ),
            "without": stack.enter_context(stepped_engine(loaded, gpu_blocks=2 * BLOCKS, mode=MODE)),
        }
        taken = [_step_seconds(engines, random.Random(number)) for number in range(ROUNDS_TO_FILL + ROUNDS)]
        rounds = taken[ROUNDS_TO_FILL:]
        _check_all_was_stored(engines["with"])
    without = median(each["without"] for each in rounds)
    yield compare(
        "decode step of 8 streams beside storing",
        ours=1000 * without * median(each["with"] / each["without"] for each in rounds),
        reference=1000 * without,
        reference_name="without slower tiers",
        unit="ms",
        bar=1.05,
        better="lower",
    )


def _step_seconds(engines: Mapping[str, Engine], rng: random.Random) -> dict[str, float]:
    """Of each engine, over one round; the one that was first in a turn is second in the next."""
    prompts = [[rng.randrange(1000, 40_000) for _ in range(PROMPT_TOKENS)] for _ in range(NUM_STREAMS)]
    streams = {name: _submit(engine, prompts) for name, engine in engines.items()}
    seconds = dict.fromkeys(engines, 0.0)
    order = rng.sample(list(engines), len(engines))
    for _ in range(TURNS):
        for name in order:
            while not all(heard.token_at for heard in streams[name]):
                engines[name].step()
            seconds[name] += _turn(engines[name])
        order.reverse()
    for name, engine in engines.items():
        while not all(heard.is_over.is_set() for heard in streams[name]):
            engine.step()
        _settle(engine)
    return {name: taken / (TURNS * STEPS_A_TURN) for name, taken in seconds.items()}


def _submit(engine: Engine, prompts: Iterable[list[int]]) -> list[Heard]:
    sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True)
    streams = []
    for number, prompt in enumerate(prompts):
        streams.append(Heard())
        engine.submit(GenerationRequest(f"r{number}", prompt, sampling), streams[-1])
    return streams


def _turn(engine: Engine) -> float:
    started_at = time.perf_counter()
    for _ in range(STEPS_A_TURN):
        engine.step()
    _settle(engine)
    return time.perf_counter() - started_at


def _settle(engine: Engine) -> None:
    """Until all is stored that shall be."""
    while engine._cache.num_transfers:
        engine._poll()
        time.sleep(0.0002)  # who runs an engine is rung at once


def _check_all_was_stored(engine: Engine) -> None:
    wanted = (ROUNDS_TO_FILL + ROUNDS) * (BLOCKS - NUM_STREAMS)  # the last token of an answer fills no block
    for tier, stats in engine.snapshot().cache.tiers.items():
        if tier != "gpu" and stats.stored_blocks < wanted:
            raise RuntimeError(f"{tier} stored {stats.stored_blocks} of {wanted} blocks: {stats.errors}")
