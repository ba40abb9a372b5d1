"""Reading a trace against decoding its JSON alone, and what recording costs the stepping thread.

A recorded request is set against the hashing of its prompt's blocks, which the engine does for every request anyway.
"""

import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench.result import Result, compare
from engine.recording import LiveRecording
from engine.sequence import Sequence
from engine.trace_folder import TraceFolder
from engine.trace_writer import TraceWriter
from tiers import chain_keys
from tiers.traces import open_trace

TRACE = Path(__file__).parents[2] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
ROUNDS = 5
BLOCK, PROMPT_TOKENS, NUM_REQUESTS = 16, 4_800, 1_000


def run() -> Iterable[Result]:
    with tempfile.TemporaryDirectory() as folder:
        yield _reading(TRACE if TRACE.exists() else _synthetic(Path(folder)))
        yield _recording(Path(folder) / "recorded")


def _reading(path: Path) -> Result:
    def decode() -> int:
        with gzip.open(path) as lines:
            return sum(1 for line in lines if json.loads(line))

    return compare(
        "reading a trace",
        ours=_best(lambda: sum(1 for _ in open_trace(path))) * 1000,
        reference=_best(decode) * 1000,
        reference_name="unpacking it and decoding its JSON",
        unit="ms",
        bar=4.0,
        better="lower",
    )


def _recording(path: Path) -> Result:
    writer = TraceWriter(TraceFolder(path, 1 << 30), secret=b"bench", model_name="bench", block_size=BLOCK)
    tokens = list(range(PROMPT_TOKENS))
    keys = chain_keys(bytes(16), tokens, BLOCK)

    def record() -> None:
        recording = LiveRecording(writer, time.time)
        for sequence in _sequences(keys):
            recording.admitted(sequence)
            recording.ended(sequence)

    def hash_prompts() -> None:
        for _ in range(NUM_REQUESTS):
            chain_keys(bytes(16), tokens, BLOCK)

    return compare(
        f"recording a request of {PROMPT_TOKENS:,} tokens, on the stepping thread",
        ours=_best(record, writer.write) / NUM_REQUESTS * 1e6,
        reference=_best(hash_prompts) / NUM_REQUESTS * 1e6,
        reference_name="hashing its prompt's blocks",
        unit="µs",
        bar=0.2,
        better="lower",
    )


def _sequences(keys: list[bytes]) -> Iterator[Sequence]:
    told: dict[str, Any] = {"num_prompt": PROMPT_TOKENS, "block_size": BLOCK, "keys": keys, "num_generated": 1}
    request = SimpleNamespace(tenant="common")
    for arrival in range(NUM_REQUESTS):
        yield cast(Sequence, SimpleNamespace(arrival=arrival, num_registered=len(keys), request=request, **told))


def _synthetic(folder: Path) -> Path:
    """Where the trace is not there."""
    path = folder / "trace.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(12_000):
            told = {"timestamp": number, "input_length": 24 * 512, "output_length": 9, "hash_ids": [*range(24)]}
            file.write(json.dumps(told) + "\n")
    return path


def _best(call: Callable[[], object], after: Callable[[], object] = lambda: None) -> float:
    seconds = []
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started_at)
        after()
    return min(seconds)
