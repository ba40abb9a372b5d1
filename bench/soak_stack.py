"""Does the whole product hold for long? Chats through `openai`, hang-ups, pages, probes and resizes on a real stack.

No request may end in a way that it should not, and no process, and nothing in Valkey, may grow. `python -m bench
soak_stack` runs one minute; `python -m bench.soak_stack 300` runs as long as it is told.
"""

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench._soaking import DEFAULT_SECONDS, EARLY_SHARE, command_line, exactly, memory_growth
from bench._stack_clients import Clients, settle
from bench._stack_watch import Sample, lasting_keys, samples, watch
from bench.result import Result, compare
from tests.e2e.stack import Stack

NUM_CHATS = 6
# Small tiers, so that a few short requests already overflow from one into the next (a block is 0.7 MiB).
SMALL_TIERS = {
    "TIERSCOPE_GPU_BYTES": "64 MiB",
    "TIERSCOPE_CPU_BYTES": "64 MiB",
    "TIERSCOPE_DISK_BYTES": "512 MiB",
}
# Pools open connections as they are needed, up to the number of threads that ask at once.
MORE_DESCRIPTORS = 1.5


def soak(seconds: float) -> Iterable[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-soak-") as folder:
        stack = Stack(Path(folder), names=("valkey", "web", "engine", "worker"), env=SMALL_TIERS)
        try:
            stack.start()
            yield from _soak(stack, seconds)
        finally:
            stack.stop()


def _soak(stack: Stack, seconds: float) -> Iterator[Result]:
    keys_before = lasting_keys(stack)
    clients = Clients(stack, NUM_CHATS)
    clients.start()
    early: dict[str, Sample] = {}
    for age, told in watch(stack, seconds):
        if age >= seconds * EARLY_SHARE:
            early = early or told
    clients.stop()
    settle(stack)
    time.sleep(2)
    late = samples(stack)
    print(f"{sum(clients.ended.values()):,} ends: {dict(clients.ended)}", file=sys.stderr)
    for sentence in clients.wrong[:20]:
        print(sentence, file=sys.stderr)
    yield exactly("soak_stack: wrong ends", len(clients.wrong), 0)
    yield exactly("soak_stack: new keys that stay for ever", len(lasting_keys(stack) - keys_before), 0)
    for name in late:
        yield from _growth(name, early[name], late[name])


def _growth(name: str, early: Sample, late: Sample) -> Iterator[Result]:
    yield memory_growth(f"soak_stack: {name}, memory", late.rss_bytes, early.rss_bytes)
    yield compare(
        f"soak_stack: {name}, open descriptors",
        ours=late.num_descriptors,
        reference=early.num_descriptors,
        reference_name="after a fifth of the time",
        unit="count",
        bar=MORE_DESCRIPTORS,
        better="lower",
    )


def run() -> Iterable[Result]:
    return soak(DEFAULT_SECONDS)


if __name__ == "__main__":
    command_line(soak)
