"""Traces with text, as LMCache's agent traces have it: `timestamp`, `session_id`, `input`, `output`.

`input` is a text, or a list of OpenAI's messages that go through the tokenizer's chat template. Blocks are those that
our engine makes: full ones, their keys chained; the block with the prompt's last token is never looked up, since that
token is always computed. Knows nothing about tokenizers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tiers.keys import chain_keys, root_key
from tiers.traces.fields import Told, WrongValueError, shown, text
from tiers.traces.request import LoadTokenizer, Messages, Tokenizer, TraceRequest

_TEXT = "text"
MAX_BLOCK_TOKENS = 1 << 16


def reader(load_tokenizer: LoadTokenizer | None, block_tokens: int) -> "ChatReader":
    if load_tokenizer is None:
        raise ValueError("a trace with texts needs a tokenizer, and there is none here.")
    if not 1 <= block_tokens <= MAX_BLOCK_TOKENS:
        raise ValueError(f"blocks of {block_tokens:,} tokens; expected 1 to {MAX_BLOCK_TOKENS:,}.")
    return ChatReader(load_tokenizer(), block_tokens)


class ChatReader:
    """Blocks of `block_tokens` tokens."""

    def __init__(self, tokenizer: Tokenizer, block_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._block_tokens = block_tokens

    def __call__(self, told: Told, at_seconds: float) -> TraceRequest:
        prompt, model = _prompt(told.get("input")), text(told, "model")
        answer = told.get("output", "")
        if not isinstance(answer, str):
            raise WrongValueError(f"“output” is {shown(answer)}; expected a text.")
        token_ids = self._prompt_ids(prompt)
        if not token_ids:
            raise WrongValueError("“input” has no tokens.")
        output_ids = self._tokenizer.answer(answer)
        num_asked = (len(token_ids) - 1) // self._block_tokens
        # The last generated token is never fed back.
        keys = chain_keys(self._root(model), [*token_ids, *output_ids[:-1]], self._block_tokens)
        return TraceRequest(
            at_seconds,
            "",
            model,
            keys[:num_asked],
            [self._block_tokens] * num_asked,
            len(token_ids),
            len(output_ids),
            keys[num_asked:],
            prompt,
        )

    def _prompt_ids(self, prompt: str | Messages) -> Sequence[int]:
        try:
            return self._tokenizer.prompt(prompt)
        except ValueError as error:
            raise WrongValueError(str(error)) from None

    def _root(self, model: str) -> bytes:
        return root_key(fingerprint=model, salt="", block_size=self._block_tokens, dtype="")


def _prompt(told: Any) -> str | Messages:
    if isinstance(told, str):
        return told
    if not isinstance(told, list) or not told or not all(isinstance(message, dict) for message in told):
        raise WrongValueError(f"“input” is {shown(told)}; expected a text or a list of messages.")
    return [_message(message) for message in told]


def _message(told: Mapping[str, Any]) -> dict[str, str]:
    role, content = told.get("role"), told.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == _TEXT for part in content):
        content = "".join(str(part.get(_TEXT, "")) for part in content)
    if not isinstance(role, str) or not isinstance(content, str):
        raise WrongValueError(f"a message is {shown(told)}; expected a role and a content of text.")
    return {"role": role, "content": content}
