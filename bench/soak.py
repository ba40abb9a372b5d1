"""Does the engine hold for long? Random chats, aborts, resizes and clears against real tiers and their threads.

Every answer is compared with what the model says without a cache, every identity is checked all the time, and the
process must not grow. `python -m bench soak` runs one minute; `python -m bench.soak 600` runs as long as it is told.
"""

import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench._soaking import DEFAULT_SECONDS, EARLY_SHARE, command_line, exactly, memory_growth
from bench.result import Result
from engine.request import BusyError, Event, FinishedEvent, GenerationRequest, RequestError, TokenEvent
from engine.sampling import SamplingParams
from tests.engine.harness import Rig, make_rig, tier_bytes
from tests.engine.mock_runner import expected_tokens
from tests.workload import ChatShape, WorkItem, chats
from tiers import RefusedError, Tier, WriteMode

NUM_CLIENTS = 8


class Totals:
    """What the clients saw, added up under a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.ended = self.prompt_tokens = self.hit_tokens = 0
        self.wrong: list[str] = []

    def add(self, item: WorkItem, tokens: list[int], last: FinishedEvent) -> None:
        expected = expected_tokens(item.prompt_token_ids, item.max_tokens)
        is_right = tokens == expected[: len(tokens)] and (last.finish_reason != "length" or tokens == expected)
        usage = last.usage
        with self._lock:
            self.ended += 1
            self.prompt_tokens += usage.prompt_tokens
            self.hit_tokens += sum(usage.hit_tokens.values())
            if not is_right or last.finish_reason not in {"length", "abort"}:
                self.wrong.append(f"{item.request_id}: {last.finish_reason} {last.error or tokens}")


def ask(rig: Rig, item: WorkItem, totals: Totals) -> None:
    """One request from start to end, as a client sees it."""
    tokens: list[int] = []
    ended = threading.Event()
    finished: list[FinishedEvent] = []

    def listen(event: Event) -> None:
        if isinstance(event, TokenEvent):
            tokens.extend(event.token_ids)
        else:
            finished.append(event)
            ended.set()

    sampling = SamplingParams(temperature=0.0, max_tokens=item.max_tokens)
    try:
        rig.engine.submit(GenerationRequest(item.request_id, item.prompt_token_ids, sampling), listen)
    except BusyError:
        time.sleep(0.01)
        return
    except RequestError:
        return
    if item.is_aborted:
        rig.engine.abort(item.request_id)
    if not ended.wait(30):
        totals.wrong.append(f"{item.request_id}: hangs")
        return
    totals.add(item, tokens, finished[0])


def client(rig: Rig, number: int, until: float, totals: Totals) -> None:
    shape = ChatShape(max_prompt=120, system_tokens=24, turn_tokens=12, num_chats=4, abort_rate=0.05)
    for item in chats(seed=number % 3, shape=shape):
        if time.monotonic() >= until:
            return
        named = WorkItem(f"c{number}-{item.request_id}", item.prompt_token_ids, item.max_tokens, item.is_aborted)
        ask(rig, named, totals)


def disturb(rig: Rig, until: float) -> int:
    """Resize, clear and reconfigure at random; returns how often a resize was refused."""
    rng, refused = random.Random(7), 0
    while time.monotonic() < until:
        tier = rng.choice([Tier.GPU, Tier.CPU, Tier.DISK])
        num_bytes = tier_bytes(tier, rng.choice([0, 40, 64, 100, 160]))
        try:
            rig.engine.resize(tier, num_bytes).result(10)
        except RefusedError:
            refused += 1
        if rng.random() < 0.2:
            rig.engine.clear(rng.choice([Tier.CPU, Tier.DISK])).result(10)
        if rng.random() < 0.2:
            rig.engine.configure(rng.choice([Tier.CPU, Tier.DISK]), write_mode=rng.choice(list(WriteMode))).result(10)
        rig.engine.check()
        rig.engine.snapshot().counters.check()
        time.sleep(0.05)
    return refused


@contextmanager
def running_rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="tierscope-soak-") as folder:
        rig = make_rig(
            gpu=100,
            cpu=100,
            disk=100,
            path=Path(folder),
            max_num_batched_tokens=64,
            clock=time.monotonic,
            num_transfer_threads=2,
        )
        rig.engine.start()
        try:
            yield rig
        finally:
            rig.engine.stop()


def soak(seconds: float) -> Iterable[Result]:
    totals, process = Totals(), psutil.Process()
    with running_rig() as rig:
        start = time.monotonic()
        until = start + seconds
        threads = [threading.Thread(target=client, args=(rig, n, until, totals)) for n in range(NUM_CLIENTS)]
        threads.append(threading.Thread(target=disturb, args=(rig, until)))
        for thread in threads:
            thread.start()
        time.sleep(seconds * EARLY_SHARE)
        early = process.memory_info().rss
        for thread in threads:
            thread.join()
        rig.engine.check()
        counters = rig.engine.snapshot().counters
        late = process.memory_info().rss
    hits = ", ".join(f"{tokens:,} from {tier}" for tier, tokens in counters.hit_tokens.items())
    print(f"{totals.ended:,} requests, {counters.preemptions:,} preemptions; hit tokens: {hits}", file=sys.stderr)
    for line in totals.wrong[:20]:
        print(line, file=sys.stderr)
    yield exactly("soak: wrong or lost answers", len(totals.wrong), 0)
    yield exactly("soak: prompt tokens counted", counters.prompt_tokens, totals.prompt_tokens)
    yield exactly("soak: hit tokens counted", sum(counters.hit_tokens.values()), totals.hit_tokens)
    yield exactly("soak: requests ended", sum(counters.requests.values()), totals.ended)
    yield memory_growth("soak: memory at the end / after a fifth", late, early)


def run() -> Iterable[Result]:
    return soak(DEFAULT_SECONDS)


if __name__ == "__main__":
    command_line(soak)
