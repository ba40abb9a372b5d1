"""The official openai client against real processes; only the engine's words are scripted."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.e2e.stack import Stack


def ask(stack: Stack, script: dict[str, Any] | None = None, **options: Any) -> Any:
    messages = [{"role": "user", "content": json.dumps(script or {})}]
    return stack.openai().chat.completions.create(model="scripted", messages=messages, **options)


def read_into(words: list[str], stream: Any) -> None:
    for chunk in stream:
        words.append(chunk.choices[0].delta.content)


def test_a_chat_is_answered_with_usage_split_by_tier(scripted_stack: Stack) -> None:
    answer = ask(scripted_stack)

    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "w0 w1 w2 "
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.prompt_tokens == 100
    assert answer.usage.completion_tokens == 3
    assert answer.usage.total_tokens == 103
    assert answer.usage.prompt_tokens_details.cached_tokens == 80
    assert answer.usage.tierscope == {
        "hit_tokens": {"gpu": 48, "cpu": 16, "disk": 16, "remote": 0},
        "computed_tokens": 20,
        "slowest_tier": "disk",
        "ttft_seconds": 0.01,
    }


def test_a_stream_gives_the_same_text_word_by_word(scripted_stack: Stack) -> None:
    chunks = list(ask(scripted_stack, stream=True, stream_options={"include_usage": True}))

    assert [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content] == [
        "w0 ",
        "w1 ",
        "w2 ",
    ]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 80


def test_a_stream_has_usage_only_where_it_was_asked_for(scripted_stack: Stack) -> None:
    chunks = list(ask(scripted_stack, stream=True))

    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_words_arrive_while_later_ones_are_not_yet_made(scripted_stack: Stack) -> None:
    stream = ask(scripted_stack, {"words": 4, "pause": 0.3}, stream=True)
    arrivals = [time.monotonic() for chunk in stream if chunk.choices[0].delta.content]

    assert arrivals[-1] - arrivals[0] > 0.5


def test_a_text_is_continued_by_the_older_endpoint(scripted_stack: Stack) -> None:
    answer = scripted_stack.openai().completions.create(model="scripted", prompt="{}")

    assert answer.object == "text_completion"
    assert answer.choices[0].text == "w0 w1 w2 "
    assert answer.usage.prompt_tokens_details.cached_tokens == 80


def test_a_text_is_streamed_by_the_older_endpoint(scripted_stack: Stack) -> None:
    chunks = list(scripted_stack.openai().completions.create(model="scripted", prompt="{}", stream=True))

    assert "".join(chunk.choices[0].text for chunk in chunks) == "w0 w1 w2 "
    assert chunks[-1].choices[0].finish_reason == "length"


def test_the_prompt_comes_back_coloured_by_tier_where_it_was_asked_for(scripted_stack: Stack) -> None:
    wanted = {"tierscope": {"return_prompt_tokens": True}}
    whole = ask(scripted_stack, extra_body=wanted)
    last = list(ask(scripted_stack, extra_body=wanted, stream=True))[-1]

    runs = [
        {"text": "cached", "num_tokens": 80, "cache_tier": "gpu"},
        {"text": "new", "num_tokens": 20, "cache_tier": None},
    ]
    assert whole.tierscope == {"prompt": runs}
    assert last.tierscope == {"prompt": runs}
    assert not hasattr(ask(scripted_stack), "tierscope")


def test_the_models_of_running_engines_are_listed(scripted_stack: Stack) -> None:
    client = scripted_stack.openai()

    assert [model.id for model in client.models.list()] == ["scripted"]
    assert client.models.retrieve("scripted").owned_by == "tierscope"
    assert time.time() - 3600 < client.models.retrieve("scripted").created <= time.time()
    with pytest.raises(openai.NotFoundError, match="There is no model"):
        client.models.retrieve("other")


def test_an_unknown_model_is_not_found(scripted_stack: Stack) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        scripted_stack.openai().chat.completions.create(model="x", messages=[{"role": "user", "content": "a"}])

    assert raised.value.code == "model_not_found"
    assert "there is scripted" in raised.value.message


def test_an_error_of_the_engine_is_told_in_its_own_words(scripted_stack: Stack) -> None:
    with pytest.raises(openai.InternalServerError, match="The disk melted"):
        ask(scripted_stack, {"words": 0, "fail": "The disk melted."})


def test_an_error_in_the_middle_of_a_stream_ends_it_with_the_reason(scripted_stack: Stack) -> None:
    stream = ask(scripted_stack, {"words": 2, "fail": "The disk melted."}, stream=True)

    words: list[str] = []
    with pytest.raises(openai.APIError, match="The disk melted"):
        read_into(words, stream)
    assert words == ["", "w0 ", "w1 "]


def test_many_requests_at_once_are_all_answered(scripted_stack: Stack) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ask(scripted_stack, {"words": 5, "pause": 0.01}), range(64)))

    assert {answer.choices[0].message.content for answer in answers} == {"w0 w1 w2 w3 w4 "}
    assert len({answer.id for answer in answers}) == 64
