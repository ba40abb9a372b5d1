"""Text to ids and back; whole or in pieces it is the same text."""

import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.loader import LoadedModel, bundled
from engine.tokenizer import StreamDecoder, Tokenizer
from tests.engine.factories import byte_tokenizer

BYTES = byte_tokenizer()
SAMPLES = [
    "Hello, world!",
    "  leading and trailing  ",
    "In 1969, 384,400 km away…",
    "naïve café — 東京 🗼 \u200d",
    "def f(x):\n\treturn x ** 2\n\n\n",
    "<|im_start|>user\nHi<|im_end|>\n",
    "",
    "don't we'll I'M",
    "\r\n\x00\x7f",
]


def streamed(tokenizer: Tokenizer, token_ids: list[int], cuts: list[int]) -> list[str]:
    decoder = StreamDecoder(tokenizer)
    edges = [0, *sorted(cut % (len(token_ids) + 1) for cut in cuts), len(token_ids)]
    return [*(decoder.push(token_ids[a:b]) for a, b in pairwise(edges)), decoder.finish()]


@given(st.text())
def test_bytes_round_trip(text: str) -> None:
    ids = BYTES.encode(text)
    assert bytes(ids) == text.encode("utf-8", "surrogatepass")
    assert BYTES.decode(ids) == text


@given(st.lists(st.integers(0, 256), max_size=60), st.lists(st.integers(0, 60), max_size=20))
def test_pieces_joined_are_the_whole_even_when_the_bytes_are_no_text(token_ids: list[int], cuts: list[int]) -> None:
    assert "".join(streamed(BYTES, token_ids, cuts)) == BYTES.decode(token_ids)


@given(st.text(max_size=30))
def test_no_piece_has_half_a_character(text: str) -> None:
    ids = BYTES.encode(text)
    pieces = streamed(BYTES, ids, list(range(len(ids))))
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in text


def test_each_character_comes_as_soon_as_it_is_complete() -> None:
    decoder = StreamDecoder(BYTES)
    assert [decoder.push([byte]) for byte in "é!".encode()] == ["", "é", "!"]


def test_special_tokens_are_not_part_of_the_text() -> None:
    assert BYTES.decode([72, 256, 105]) == "Hi"
    assert "".join(streamed(BYTES, [72, 256, 105], [1, 2])) == "Hi"


def test_a_file_that_is_no_tokenizer_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a usable tokenizer"):
        Tokenizer.from_file(path)


@pytest.fixture(scope="module")
def reference() -> Any:
    from transformers import AutoTokenizer  # takes seconds, and every process that runs tests reads this file

    path = bundled()
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


@pytest.mark.parametrize("text", SAMPLES)
def test_the_real_tokenizer_round_trips(text: str, real_model: LoadedModel) -> None:
    ids = real_model.tokenizer.encode(text)
    assert real_model.tokenizer.decode(ids) == text.replace("<|im_start|>", "").replace("<|im_end|>", "")


@pytest.mark.parametrize("text", SAMPLES)
def test_the_real_tokenizer_is_the_one_that_transformers_reads_from_the_file(
    text: str, real_model: LoadedModel, reference: Any
) -> None:
    assert real_model.tokenizer.encode(text) == reference.encode(text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x04\U000e0001 \n#"), max_size=40))
def test_no_text_becomes_fewer_tokens_than_its_bytes_say(real_model: LoadedModel, text: str) -> None:
    repeated = text * 50
    for tokenizer in (BYTES, real_model.tokenizer):
        assert tokenizer.least_tokens(repeated) <= len(tokenizer.encode(repeated))


def test_a_long_text_has_a_bound_that_is_worth_having(real_model: LoadedModel) -> None:
    text = "word " * 800_000
    assert real_model.tokenizer.least_tokens(text) == -(-len(text) // 81)  # its longest: a line break and 80 spaces
    assert BYTES.least_tokens(text) == -(-len(text) // len("<end>"))


def test_other_threads_go_on_while_a_long_text_is_tokenized(real_model: LoadedModel) -> None:
    turns, is_over = 0, threading.Event()

    def take_turns() -> None:
        nonlocal turns
        while not is_over.wait(0.001):
            turns += 1

    thread = threading.Thread(target=take_turns)
    thread.start()
    real_model.tokenizer.encode("word " * 20_000)
    is_over.set()
    thread.join()
    assert turns > 3  # while the library keeps Python's lock there is none
