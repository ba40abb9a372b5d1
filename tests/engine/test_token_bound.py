"""Which tokenizers have a bound: those that neither drop nor shorten text, as their own files say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from engine.token_bound import bound_of
from tests.engine.factories import byte_tokenizer

LLAMA2_VOCAB = [*(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "aa", "\u2581a", "<unk>"]


def told(backend: Tokenizer) -> Any:
    return json.loads(backend.to_str())


def like_llama2(vocab: list[str] = LLAMA2_VOCAB) -> Tokenizer:
    model = models.BPE(
        vocab={token: index for index, token in enumerate(vocab)},
        merges=[("a", "a"), ("\u2581", "a")],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    backend = Tokenizer(model)
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    return backend


@given(st.text(alphabet=st.sampled_from("aa b\u00e9\U0001f5fc")))
def test_a_vocabulary_with_every_byte_is_bounded_by_its_longest_token(text: str) -> None:
    backend = like_llama2()
    assert bound_of(told(backend)).least_tokens(text) <= len(backend.encode(text).ids)
    assert bound_of(told(backend)).least_tokens("a" * 1200) == 200  # <0x00> is six bytes


def test_where_unknown_characters_melt_into_one_token_nothing_is_known() -> None:
    assert (
        bound_of(told(like_llama2([token for token in LLAMA2_VOCAB if token != "<0xC3>"]))).least_tokens("a" * 99) == 0
    )


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", normalizers.NFC()),
        ("normalizer", normalizers.Sequence([normalizers.Prepend("x"), normalizers.Strip()])),
        ("normalizer", normalizers.Replace("ab", "c")),
        ("normalizer", normalizers.Replace(Regex(" +"), " ")),
        ("pre_tokenizer", pre_tokenizers.WhitespaceSplit()),
        ("pre_tokenizer", pre_tokenizers.Sequence([pre_tokenizers.Split("x", "removed"), pre_tokenizers.ByteLevel()])),
    ],
)
def test_whoever_may_shorten_or_drop_text_has_none(part: str, value: Any) -> None:
    backend = byte_tokenizer().copy_of_backend()
    assert bound_of(told(backend)).least_tokens("a" * 50) == 10
    setattr(backend, part, value)
    assert bound_of(told(backend)).least_tokens("a" * 50) == 0


def test_a_marker_that_swallows_the_spaces_beside_it_leaves_none() -> None:
    backend = byte_tokenizer().copy_of_backend()
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    assert bound_of(told(backend)).least_tokens(" " * 50) == 0
