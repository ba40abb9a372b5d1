"""How few tokens a text can become, from its bytes alone: what cannot fit is refused before seconds of tokenizing.

Reads Hugging Face's tokenizer.json. Knows nothing about requests or limits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tokenizers import pre_tokenizers

# They cut text and drop none of it; Split and Punctuation only as long as they are not told to remove.
_CUTTING = {"ByteLevel", "Digits", "Metaspace", "Split", "Punctuation"}


class TokenBound(Protocol):
    def least_tokens(self, text: str) -> int:
        """At least so many tokens, whatever the text is; 0 where nothing is known."""
        ...


class NoBound:
    """A tokenizer that may shorten or drop text before it counts."""

    def least_tokens(self, text: str) -> int:
        return 0


@dataclass(frozen=True)
class ByteBound:
    """Every byte but the `dropped` ones ends up in a token, and no token holds more than `longest_bytes`."""

    longest_bytes: int
    dropped: bytes = b""

    def least_tokens(self, text: str) -> int:
        kept = text.encode("utf-8", "surrogatepass").translate(None, self.dropped)
        return -(-len(kept) // self.longest_bytes)


def bound_of(told: Mapping[str, Any]) -> TokenBound:
    """`told` is a tokenizer.json."""
    model, added = told["model"], told["added_tokens"]
    cutters = list(_flat(told["pre_tokenizer"], "pretokenizers"))
    keeps_text = (
        model["type"] == "BPE"
        and all(map(_never_shortens, _flat(told["normalizer"], "normalizers")))
        and all(map(_only_cuts, cutters))
        and not any(token["lstrip"] or token["rstrip"] for token in added)
    )
    if not keeps_text or not model["vocab"]:
        return NoBound()
    contents = [token["content"] for token in added]
    if any(cutter["type"] == "ByteLevel" for cutter in cutters):
        return _byte_level(model["vocab"], contents)
    has_all_bytes = model.get("byte_fallback") and all(f"<0x{byte:02X}>" in model["vocab"] for byte in range(256))
    return ByteBound(_longest([*model["vocab"], *contents])) if has_all_bytes else NoBound()


def _byte_level(vocab: Mapping[str, int], added: list[str]) -> ByteBound:
    """Each character of a token is one byte. A byte without a token (SmolLM2 has 21 such) leaves nothing behind."""
    dropped = bytes(byte for byte, written in enumerate(_byte_level_alphabet()) if written not in vocab)
    return ByteBound(max(*map(len, vocab), _longest(added), 1), dropped)


def _byte_level_alphabet() -> list[str]:
    """How GPT-2 writes byte n: the visible ones as themselves, the others from U+0100 on."""
    visible = {character for character in pre_tokenizers.ByteLevel.alphabet() if ord(character) < 256}
    hidden = [byte for byte in range(256) if chr(byte) not in visible]
    return [chr(256 + hidden.index(byte)) if byte in hidden else chr(byte) for byte in range(256)]


def _longest(tokens: list[str]) -> int:
    return max((len(token.encode()) for token in tokens), default=1)


def _flat(part: Mapping[str, Any] | None, members: str) -> Iterator[Mapping[str, Any]]:
    if part is not None and part["type"] == "Sequence":
        for member in part[members]:
            yield from _flat(member, members)
    elif part is not None:
        yield part


def _never_shortens(normalizer: Mapping[str, Any]) -> bool:
    """Composing forms, lower case and stripping do; Llama 2's " " to "▁" does not."""
    if normalizer["type"] == "Replace":
        pattern = normalizer["pattern"].get("String")
        return pattern is not None and len(normalizer["content"].encode()) >= len(pattern.encode())
    return bool(normalizer["type"] == "Prepend")


def _only_cuts(cutter: Mapping[str, Any]) -> bool:
    return cutter["type"] in _CUTTING and cutter.get("behavior") != "Removed"
