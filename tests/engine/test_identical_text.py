"""Greedy text of the real model does not depend on where the prompt's blocks came from."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from engine.build import build_engine
from engine.engine import Engine
from engine.engine_config import EngineConfig
from engine.loader import LoadedModel
from engine.request import CacheUse, Event, FinishedEvent, GenerationRequest, TokenEvent, Usage
from engine.sampling import SamplingParams
from tests.tiers.valkey import ValkeyServer
from tiers import MachineLimits, Tier, TierConfig, WriteMode
from tiers.block_format import stored_bytes

BLOCK_SIZE = 16
NUM_TOKENS = 6
SYSTEM = " You are a patient teacher of physics at a small school by the sea. Answer in short sentences." * 4
QUESTIONS = ("Why is the sky blue?", "What makes a rainbow?", "How does a sail work?")


@dataclass(frozen=True)
class Text:
    tokens: tuple[int, ...]
    usage: Usage


@dataclass(frozen=True)
class Sizes:
    """Blocks by tier. Each prompt has five that can be reused and shares none with the others."""

    gpu: int
    cpu: int = 0
    disk: int = 0
    remote: int = 0


FORCED = {
    "gpu only": (Sizes(gpu=64), {Tier.GPU}),
    "tiny gpu and cpu": (Sizes(gpu=8, cpu=64), {Tier.GPU, Tier.CPU}),
    "tiny gpu and disk": (Sizes(gpu=8, disk=64), {Tier.GPU, Tier.DISK}),
    "tiny gpu, tiny cpu and disk": (Sizes(gpu=8, cpu=5, disk=64), {Tier.GPU, Tier.CPU, Tier.DISK}),
    "tiny gpu and remote": (Sizes(gpu=8, remote=64), {Tier.GPU, Tier.REMOTE}),
    "tiny gpu, tiny cpu, tiny disk and remote": (Sizes(gpu=8, cpu=3, disk=3, remote=64), set(Tier)),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path_factory.mktemp("valkey")).start()
    yield server
    server.kill()


def engine_with(loaded: LoadedModel, sizes: Sizes, path: Path, url: str | None = None) -> Engine:
    slab = loaded.model.slab(BLOCK_SIZE)
    tiers: tuple[TierConfig, ...] = (
        TierConfig(Tier.GPU, sizes.gpu * slab.num_bytes),
        TierConfig(Tier.CPU, sizes.cpu * slab.num_bytes),
        TierConfig(Tier.DISK, sizes.disk * stored_bytes(slab), path=path),
    )
    if url:
        tiers += (TierConfig(Tier.REMOTE, sizes.remote * stored_bytes(slab), url=url, timeout_seconds=30),)
    config = EngineConfig("test", tiers, block_size=BLOCK_SIZE, min_gpu_tokens=BLOCK_SIZE)
    return build_engine(config, loaded, MachineLimits())


def ask(engine: Engine, request_id: str, prompt: list[int], cache: CacheUse = "on") -> Text:
    tokens: list[int] = []
    done: Future[Usage] = Future()

    def listen(event: Event) -> None:
        if isinstance(event, TokenEvent):
            tokens.extend(event.token_ids)
        else:
            assert isinstance(event, FinishedEvent)
            done.set_result(event.usage)

    sampling = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
    engine.submit(GenerationRequest(request_id, prompt, sampling, cache=cache), listen)
    usage = done.result(120)
    return Text(tuple(tokens), usage)


@pytest.fixture(scope="module")
def prompts(real_model: LoadedModel) -> list[list[int]]:
    return [real_model.tokenizer.encode(f"{question}{SYSTEM} Answer:") for question in QUESTIONS]


@pytest.fixture(scope="module")
def uncached(
    real_model: LoadedModel, prompts: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[int, ...]]]:
    engine = engine_with(real_model, Sizes(gpu=64), tmp_path_factory.mktemp("uncached"))
    engine.start()
    yield [ask(engine, f"r{number}", prompt, "off").tokens for number, prompt in enumerate(prompts)]
    engine.stop()


@pytest.mark.parametrize("name", FORCED)
def test_the_text_is_the_same_whatever_tier_the_prompt_came_from(
    name: str,
    real_model: LoadedModel,
    prompts: list[list[int]],
    uncached: list[tuple[int, ...]],
    server: ValkeyServer,
    tmp_path: Path,
) -> None:
    sizes, expected_tiers = FORCED[name]
    server.client.flushall()
    engine = engine_with(real_model, sizes, tmp_path, server.url if sizes.remote else None)
    engine.start()
    read: set[Tier] = set()
    for turn, number in enumerate([0, 1, 2, 2, 1, 0]):
        text = ask(engine, f"turn {turn}", prompts[number])
        assert text.tokens == uncached[number]
        read |= {tier for tier, tokens in text.usage.hit_tokens.items() if tokens}
    engine.check()
    engine.stop()
    assert read == expected_tiers


def test_the_text_is_the_same_for_requests_that_run_together_and_preempt_each_other(
    real_model: LoadedModel, prompts: list[list[int]], uncached: list[tuple[int, ...]], tmp_path: Path
) -> None:
    engine = engine_with(real_model, Sizes(gpu=2 * (len(prompts[0]) // BLOCK_SIZE + 1), cpu=64), tmp_path)
    heard: dict[int, list[int]] = {number: [] for number in range(len(prompts))}
    done: dict[int, Future[Usage]] = {number: Future() for number in range(len(prompts))}

    def listener(number: int, event: Event) -> None:
        if isinstance(event, TokenEvent):
            heard[number].extend(event.token_ids)
        else:
            done[number].set_result(event.usage)

    sampling = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
    for number, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(f"r{number}", prompt, sampling), partial(listener, number))
    engine.start()
    for number in done:
        done[number].result(120)
        assert tuple(heard[number]) == uncached[number]
    engine.check()
    engine.stop()


def test_an_engine_says_the_same_with_what_another_has_stored(
    real_model: LoadedModel,
    prompts: list[list[int]],
    uncached: list[tuple[int, ...]],
    server: ValkeyServer,
    tmp_path: Path,
) -> None:
    server.client.flushall()
    sizes = Sizes(gpu=8, remote=64)
    first = engine_with(real_model, sizes, tmp_path / "first", server.url)
    first.configure(Tier.REMOTE, write_mode=WriteMode.WRITE_THROUGH)
    first.start()
    for number, prompt in enumerate(prompts):
        assert ask(first, f"first {number}", prompt).tokens == uncached[number]
    first.stop(flush_seconds=30)
    second = engine_with(real_model, sizes, tmp_path / "second", server.url)
    second.start()
    deadline = time.monotonic() + 60
    while not second.snapshot().cache[Tier.REMOTE].resident_blocks:
        assert time.monotonic() < deadline, "the second engine does not see what is there"
        time.sleep(0.01)
    for number, prompt in enumerate(prompts):
        text = ask(second, f"second {number}", prompt)
        assert text.tokens == uncached[number]
        assert text.usage.hit_tokens[Tier.REMOTE] == (len(prompt) - 1) // BLOCK_SIZE * BLOCK_SIZE
    second.stop()
