"""Text to token ids and back, whole or as the ids come. Knows nothing about models, chats or requests."""

import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers

from engine.token_bound import bound_of

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Tokenizer:
    """A fast tokenizer as Hugging Face's tokenizer.json describes it. Thread-safe."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        # A file may ask for truncation or padding, which a prompt must never meet.
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._bound = bound_of(json.loads(backend.to_str()))

    @classmethod
    def from_file(cls, path: Path) -> "Tokenizer":
        """Raises ValueError where the file is missing or is no tokenizer."""
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"{path} is not a usable tokenizer: {error}") from error

    @property
    def vocab_size(self) -> int:
        return int(self._backend.get_vocab_size(with_added_tokens=True))

    @property
    def special_tokens(self) -> list[str]:
        """As they are written: the markers of turns and texts that no text is decoded to."""
        return [str(token.content) for token in self._backend.get_added_tokens_decoder().values() if token.special]

    def copy_of_backend(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_str(self._backend.to_str())

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids. Special tokens written out in the text become themselves.

        `add_special_tokens` lets the tokenizer put its own at the start or end; a chat template wrote them already.
        """
        return encode(self._backend, text, add_special_tokens=add_special_tokens)

    def least_tokens(self, text: str) -> int:
        """A lower bound of `len(encode(text))` in a millisecond a MB; 0 where nothing is known."""
        return self._bound.least_tokens(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text without special tokens; bytes that are no UTF-8 become U+FFFD."""
        text: str = self._backend.decode(list(token_ids), skip_special_tokens=True)
        return text


def encode(backend: tokenizers.Tokenizer, text: str, *, add_special_tokens: bool) -> list[int]:
    """As a batch of one: only for batches does the library let go of Python's lock, and 1 MB takes two seconds.

    Meanwhile other requests' steps and the engine's sign of life go on.
    """
    ids: list[int] = backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0].ids
    return ids


class StreamDecoder:
    """Decodes ids as they come. What it gave out, joined, is what `Tokenizer.decode` makes of all ids.

    Never gives out a part of a character: a trailing U+FFFD is held back until more ids or the end settle it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # A short run of settled ids is decoded again with the new ones: a token's text may depend on those before it.
        self._settled: list[int] = []
        self._pending: list[int] = []

    def push(self, token_ids: Sequence[int]) -> str:
        """The text that these ids settle; empty while a character is incomplete."""
        self._pending += token_ids
        text = self._text_of_pending()
        if not text or text.endswith(_REPLACEMENT):
            return ""
        self._settled, self._pending = self._pending, []
        return text

    def finish(self) -> str:
        """What was held back, as it is."""
        text = self._text_of_pending()
        self._settled, self._pending = [], []
        return text

    def _text_of_pending(self) -> str:
        before = self._tokenizer.decode(self._settled)
        return self._tokenizer.decode(self._settled + self._pending)[len(before) :]
