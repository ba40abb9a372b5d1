"""The text ends right before the first stop string, in whatever pieces it comes."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.stop import StopCutter

letters = st.text("ab", max_size=40)
stops = st.lists(st.text("ab", min_size=1, max_size=5), max_size=3)


def naive(text: str, stop: Sequence[str]) -> str:
    """Letter by letter: the first end at which a stop string is complete, cut before the longest one there."""
    for end in range(1, len(text) + 1):
        complete = [word for word in stop if text[:end].endswith(word)]
        if complete:
            return text[: end - max(map(len, complete))]
    return text


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@given(letters, stops, st.lists(st.integers(0, 40), max_size=8))
def test_what_comes_out_is_the_text_before_the_stop_whatever_the_pieces(
    text: str, stop: list[str], cuts: list[int]
) -> None:
    cutter = StopCutter(stop)
    out = "".join(cutter.push(piece) for piece in pieces_of(text, cuts)) + cutter.finish()
    assert out == naive(text, stop)
    assert cutter.is_stopped == any(word in text for word in stop)


@given(letters, stops)
def test_nothing_is_held_back_that_cannot_become_a_stop_string(text: str, stop: list[str]) -> None:
    cutter = StopCutter(stop)
    out = ""
    for end, letter in enumerate(text, 1):
        out += cutter.push(letter)
        held = text[len(out) : end]
        assert cutter.is_stopped or not held or any(word.startswith(held) for word in stop)


def test_without_stop_strings_all_comes_at_once() -> None:
    assert StopCutter(()).push("text") == "text"


def test_after_a_stop_string_nothing_comes() -> None:
    cutter = StopCutter(("###",))
    assert [cutter.push("one#"), cutter.push("##two"), cutter.push("three"), cutter.finish()] == ["one", "", "", ""]
