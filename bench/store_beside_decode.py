"""What storing costs the others: decode steps of eight streams while every block goes to cpu, disk and remote at once.

Each stream's prompt fills eight blocks and its answer another each 16 tokens; the reference is the same engine without
slower tiers, in the same process, in turns. A step's time is what lies between two tokens of a stream, on average, once
all streams decode.
"""

import random
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench._real_engine import Heard, load_model, real_engine
from bench.result import Result, compare
from engine.engine import Engine
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from tests.tiers.valkey import ValkeyServer
from tiers import WriteMode

NUM_STREAMS = 8
PROMPT_TOKENS = 128
NEW_TOKENS = 64
ROUNDS = 5
BLOCKS = NUM_STREAMS * (PROMPT_TOKENS + NEW_TOKENS) // 16


def run() -> Iterable[Result]:
    loaded = load_model()
    with ExitStack() as stack:
        server = ValkeyServer(Path(stack.enter_context(tempfile.TemporaryDirectory()))).start()
        stack.callback(server.kill)
        lower = {"cpu_blocks": 8 * BLOCKS, "disk_blocks": 8 * BLOCKS, "remote_blocks": 8 * BLOCKS, "url": server.url}
        engines = {
            name: stack.enter_context(
                real_engine(loaded, gpu_blocks=2 * BLOCKS, mode=WriteMode.WRITE_THROUGH, **sizes)  # type: ignore[arg-type]
            )
            for name, sizes in (("with", lower), ("without", {}))
        }
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(ROUNDS + 1):
            for name, engine in engines.items():
                taken = _step_seconds(engine, random.Random(number))
                if number:
                    seconds[name].append(taken)
        _check_all_was_stored(engines["with"])
    yield compare(
        "decode step of 8 streams beside storing",
        ours=1000 * median(seconds["with"]),
        reference=1000 * median(seconds["without"]),
        reference_name="without slower tiers",
        unit="ms",
        bar=1.05,
        better="lower",
    )


def _step_seconds(engine: Engine, rng: random.Random) -> float:
    sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True)
    streams = [Heard() for _ in range(NUM_STREAMS)]
    for number, heard in enumerate(streams):
        prompt = [rng.randrange(1000, 40_000) for _ in range(PROMPT_TOKENS)]
        engine.submit(GenerationRequest(f"r{number}", prompt, sampling), heard)
    for heard in streams:
        if not heard.is_over.wait(300):
            raise TimeoutError("a stream did not end within 300 s")
    begun_at = max(heard.token_at[0] for heard in streams)
    ended_at = min(heard.token_at[-1] for heard in streams)
    times = [at for at in streams[-1].token_at if begun_at <= at <= ended_at]
    return (times[-1] - times[0]) / (len(times) - 1)


def _check_all_was_stored(engine: Engine) -> None:
    wanted = (ROUNDS + 1) * (BLOCKS - NUM_STREAMS)  # the last token of an answer fills no block
    for tier, stats in engine.snapshot().cache.tiers.items():
        if tier != "gpu" and stats.stored_blocks < wanted:
            raise RuntimeError(f"{tier} stored {stats.stored_blocks} of {wanted} blocks: {stats.errors}")
