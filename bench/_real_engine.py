"""A real engine over the bundled model for the benchmarks. Knows nothing about what is measured with it."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict, Unpack

from engine.build import build_engine, resolve_device
from engine.engine import Engine
from engine.engine_config import EngineConfig
from engine.loader import LoadedModel, load
from engine.request import Event, FinishedEvent, GenerationRequest, TokenEvent
from engine.sampling import SamplingParams
from tiers import MachineLimits, Tier, TierConfig, WriteMode
from tiers.block_format import stored_bytes

MODEL_CACHE = Path(tempfile.gettempdir()) / "tierscope-bench-model"
BLOCK_SIZE = 16


class Sizes(TypedDict):
    """In blocks; `url` is the server of the remote tier, if there is one."""

    gpu_blocks: int
    cpu_blocks: NotRequired[int]
    disk_blocks: NotRequired[int]
    remote_blocks: NotRequired[int]
    url: NotRequired[str]
    mode: WriteMode


@dataclass
class Heard:
    """What a request's listener heard, and when."""

    token_ids: list[int] = field(default_factory=list)
    token_at: list[float] = field(default_factory=list)
    finished: FinishedEvent | None = None
    is_over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TokenEvent):
            self.token_ids += event.token_ids
            self.token_at.append(time.perf_counter())
        else:
            self.finished = event
            self.is_over.set()


def load_model() -> LoadedModel:
    return load(None, cache_dir=MODEL_CACHE, device=resolve_device("auto"), progress=lambda text, share: None)


@contextmanager
def real_engine(loaded: LoadedModel, **sizes: Unpack[Sizes]) -> Iterator[Engine]:
    """A started engine whose tiers hold so many blocks each; everything is gone afterwards."""
    with stepped_engine(loaded, **sizes) as engine:
        engine.start()
        yield engine


@contextmanager
def stepped_engine(
    loaded: LoadedModel,
    *,
    gpu_blocks: int,
    cpu_blocks: int = 0,
    disk_blocks: int = 0,
    remote_blocks: int = 0,
    url: str = "",
    mode: WriteMode,
) -> Iterator[Engine]:
    """As `real_engine`, but whoever has it takes its steps."""
    slab = loaded.model.slab(BLOCK_SIZE)
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        tiers: tuple[TierConfig, ...] = (
            TierConfig(Tier.GPU, gpu_blocks * slab.num_bytes, write_mode=mode),
            TierConfig(Tier.CPU, cpu_blocks * slab.num_bytes, write_mode=mode),
            TierConfig(Tier.DISK, disk_blocks * stored_bytes(slab), write_mode=mode, path=Path(folder)),
        )
        if url:
            tiers += (TierConfig(Tier.REMOTE, remote_blocks * stored_bytes(slab), write_mode=mode, url=url),)
        engine = build_engine(EngineConfig("bench", tiers, block_size=BLOCK_SIZE), loaded, MachineLimits())
        try:
            yield engine
        finally:
            engine.stop()


def ask(engine: Engine, request_id: str, prompt: list[int], max_tokens: int) -> Heard:
    """A greedy request from start to end."""
    heard = Heard()
    sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
    engine.submit(GenerationRequest(request_id, prompt, sampling), heard)
    if not heard.is_over.wait(300):
        raise TimeoutError(f"request {request_id} did not end within 300 s")
    if heard.finished is None or heard.finished.finish_reason == "error":
        raise RuntimeError(f"request {request_id} failed: {heard.finished}")
    return heard
