"""The tokenizer that a trace with texts is read by: a model's own, with its chat template. Loads no weights.

Knows nothing about traces.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.chat_prompt import ChatPrompt
from engine.chat_template import ChatTemplateError
from engine.hf_texts import chat_template_of, optional_json
from engine.tokenizer import Tokenizer
from engine.weights_error import WeightsError

_TOKENIZER = "tokenizer.json"


class TraceTokenizer:
    """As an engine with this model makes token ids of what clients send."""

    def __init__(self, tokenizer: Tokenizer, chat_prompt: ChatPrompt | None) -> None:
        self._tokenizer = tokenizer
        self._chat_prompt = chat_prompt

    def prompt(self, prompt: str | Sequence[Mapping[str, str]]) -> list[int]:
        """Raises ValueError with a sentence where the template cannot render the messages."""
        if isinstance(prompt, str):
            return self._tokenizer.encode(prompt)
        if self._chat_prompt is None:
            raise ChatTemplateError("The tokenizer has no chat template; expected a text instead of messages.")
        return self._chat_prompt.token_ids(prompt)

    def answer(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)


def load_trace_tokenizer(path: Path, cache_dir: Path) -> TraceTokenizer:
    """From a tokenizer.json, a Hugging Face folder or a .gguf file, which may be unpacked in `cache_dir` already.

    Raises WeightsError, or OSError where the path leads nowhere.
    """
    if path.suffix != ".gguf":
        return _from_file(path / _TOKENIZER if path.is_dir() else path)
    from engine import gguf_weights  # torch

    unpacked = gguf_weights.folder_of(path, cache_dir) / _TOKENIZER
    if unpacked.is_file():
        return _from_file(unpacked)
    with tempfile.TemporaryDirectory(prefix="tierscope-tokenizer-") as folder:
        gguf_weights.write_texts(path, Path(folder))
        return _from_file(Path(folder) / _TOKENIZER)


def _from_file(path: Path) -> TraceTokenizer:
    path.stat()
    try:
        tokenizer = Tokenizer.from_file(path)
    except ValueError as error:
        raise WeightsError(str(error)) from None
    template = chat_template_of(path.parent, optional_json(path.parent / "tokenizer_config.json"))
    return TraceTokenizer(tokenizer, None if template is None else ChatPrompt(template, tokenizer))
