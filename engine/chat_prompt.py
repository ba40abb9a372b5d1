"""A conversation to the token ids of the assistant's next turn, in which what people wrote stays text.

A template's own markers become special tokens; the same marker written out inside a message does not, so that nobody
who only writes messages can end a turn or speak as somebody else. Knows nothing about requests.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import tokenizers

from engine.chat_template import ChatTemplate
from engine.tokenizer import Tokenizer, encode

# Unicode reserves it for a program's own use: no text has it, no template looks for it.
_BREAK = "\ufdd0"


class ChatPrompt:
    """Thread-safe."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer) -> None:
        self._template = template
        self._tokenizer = tokenizer
        markers = sorted(map(re.escape, tokenizer.special_tokens), key=len, reverse=True)
        # At each place where a marker begins, its first character: also where two overlap.
        self._begin = re.compile(f"(?=(?:{'|'.join(markers)}))(.)", re.DOTALL) if markers else re.compile("(?!)")

    def token_ids(
        self, messages: Sequence[Mapping[str, str]], check: Callable[[str], None] = lambda text: None
    ) -> list[int]:
        """`messages` have `role` and `content`. Raises ChatTemplateError with one sentence.

        `check` sees the text before what takes long begins, and may raise.
        """
        text = self._template.render(messages)
        check(text)
        if not any(self._begin.search(message["content"]) for message in messages):
            return self._tokenizer.encode(text, add_special_tokens=False)
        broken = [{**message, "content": self._begin.sub(rf"\1{_BREAK}", message["content"])} for message in messages]
        return self._breaking.encode(self._template.render(broken))

    @cached_property
    def _breaking(self) -> "_BreakingTokenizer":
        return _BreakingTokenizer(self._tokenizer)


class _BreakingTokenizer:
    """A copy that knows one special token more, at which text is cut like at any other, and leaves it out."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._backend = tokenizer.copy_of_backend()
        self._backend.add_special_tokens([tokenizers.AddedToken(_BREAK, normalized=False, special=True)])
        self._break_id = self._backend.token_to_id(_BREAK)

    def encode(self, text: str) -> list[int]:
        ids = encode(self._backend, text, add_special_tokens=False)
        return [token_id for token_id in ids if token_id != self._break_id]
