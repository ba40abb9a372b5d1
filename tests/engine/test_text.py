"""Text in, text out, over the real engine, the tiny model and real tiers."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from engine.build import build_engine
from engine.chat_template import ChatTemplateError
from engine.engine import Engine
from engine.engine_config import EngineConfig
from engine.loader import LoadedModel
from engine.request import GenerationRequest
from engine.sampling import SamplingParams
from engine.text import TextDelta, TextEvent, TextFinished, TextGenerator, TextStream
from tests.engine.factories import byte_tokenizer, tiny_model
from tiers import MachineLimits, Tier, TierConfig


@dataclass
class Reader:
    deltas: list[str] = field(default_factory=list)
    finished: TextFinished | None = None
    is_over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, event: TextEvent) -> None:
        if isinstance(event, TextDelta):
            assert self.finished is None
            self.deltas.append(event.text)
        else:
            self.finished = event
            self.is_over.set()

    @property
    def text(self) -> str:
        return "".join(self.deltas)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


@pytest.fixture(scope="module")
def engine(loaded: LoadedModel) -> Iterator[Engine]:
    tiers = (TierConfig(Tier.GPU, 64 * loaded.model.slab(4).num_bytes),)
    config = EngineConfig("tiny", tiers, block_size=4, min_gpu_tokens=4)
    engine = build_engine(config, loaded, MachineLimits())
    engine.start()
    yield engine
    engine.stop()


def read(engine: Engine, loaded: LoadedModel, name: str, prompt: str, **sampling: object) -> Reader:
    generator, reader = TextGenerator(engine, loaded), Reader()
    params = SamplingParams(**({"temperature": 0.0, "max_tokens": 40} | sampling))  # type: ignore[arg-type]
    generator.submit(GenerationRequest(name, generator.prompt_token_ids(prompt), params), reader)
    assert reader.is_over.wait(30)
    return reader


def test_the_text_is_what_the_tokens_say_and_ends_by_length(engine: Engine, loaded: LoadedModel) -> None:
    reader = read(engine, loaded, "plain", "Once upon a time")
    assert reader.finished is not None
    assert reader.finished.finish_reason == "length"
    assert reader.finished.usage.generated_tokens == 40
    assert reader.text


def test_a_stop_string_cuts_the_text_and_ends_the_request(engine: Engine, loaded: LoadedModel) -> None:
    whole = read(engine, loaded, "whole", "The old pier", max_tokens=80, temperature=1.0, seed=5, ignore_eos=True).text
    stop = whole[10:12]
    reader = read(
        engine, loaded, "cut", "The old pier", max_tokens=80, temperature=1.0, seed=5, ignore_eos=True, stop=(stop,)
    )
    assert reader.text == whole[: whole.index(stop)]
    assert reader.finished is not None
    assert reader.finished.finish_reason == "stop"
    assert reader.finished.usage.generated_tokens < 80


def test_a_chat_becomes_the_templates_prompt(engine: Engine, loaded: LoadedModel) -> None:
    ids = TextGenerator(engine, loaded).chat_token_ids([{"role": "user", "content": "Hi"}])
    assert bytes(ids) == b"<user>Hi\n<assistant>"


def test_a_model_without_a_template_says_so(engine: Engine, loaded: LoadedModel) -> None:
    plain = LoadedModel("plain", loaded.model, loaded.tokenizer, None, loaded.eos_ids)
    with pytest.raises(ChatTemplateError, match="The model plain has no chat template"):
        TextGenerator(engine, plain).chat_token_ids([{"role": "user", "content": "Hi"}])


def test_what_was_held_back_comes_at_the_end() -> None:
    stream = TextStream(byte_tokenizer(), ("END",))
    assert stream.push(list(b"so EN")) == "so "
    assert stream.push([0xC3]) == ""
    assert stream.finish() == "EN\ufffd"


def test_an_aborted_request_ends_once_with_what_it_had(engine: Engine, loaded: LoadedModel) -> None:
    generator, reader = TextGenerator(engine, loaded), Reader()
    params = SamplingParams(temperature=0.0, max_tokens=200, ignore_eos=True)
    generator.submit(GenerationRequest("aborted", generator.prompt_token_ids("Go on"), params), reader)
    generator.abort("aborted")
    assert reader.is_over.wait(30)
    assert reader.finished is not None
    assert reader.finished.finish_reason == "abort"
