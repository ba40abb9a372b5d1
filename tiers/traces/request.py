"""One request of a trace, whatever form it was read from. Knows nothing about files."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Messages = Sequence[Mapping[str, str]]


class Tokenizer(Protocol):
    def prompt(self, prompt: str | Messages) -> Sequence[int]:
        """Token ids of a text, or of a conversation through the chat template. Raises ValueError with a sentence."""
        ...

    def answer(self, text: str) -> Sequence[int]:
        """Token ids that follow a prompt."""
        ...


# Loading takes seconds, and only traces with text need one. Raises ValueError with a sentence.
LoadTokenizer = Callable[[], Tokenizer]


class TraceError(ValueError):
    """What is read is no trace; the message says where, what is wrong and what was expected."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A prompt by the names of its blocks; a name stands for a block with everything before it.

    `at_seconds` counts from the trace's first request, 0.0 where the trace tells no times. `block_ids` are looked up,
    first to last, and `block_tokens` of the prompt lie in each. What is left of `num_prompt_tokens` is never a hit.
    `output_block_ids` are not looked up: they fill afterwards, with the prompt's end and the answer. `prompt` is text
    or messages where the trace has them.
    """

    at_seconds: float
    tenant: str
    model_name: str
    block_ids: Sequence[Hashable]
    block_tokens: Sequence[int]
    num_prompt_tokens: int
    num_output_tokens: int = 0
    output_block_ids: Sequence[Hashable] = ()
    prompt: str | Messages | None = None
