"""The engine's upper rim: text in, text out, with stop strings cut exactly.

Everything below speaks token ids. Knows nothing about HTTP, JSON or who reads the text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.chat_prompt import ChatPrompt
from engine.chat_template import ChatTemplateError
from engine.engine import Engine
from engine.loader import LoadedModel
from engine.request import Event, FinishedEvent, FinishReason, GenerationRequest, TokenEvent, TooLongError, Usage
from engine.stop import StopCutter
from engine.tokenizer import StreamDecoder, Tokenizer


@dataclass(frozen=True)
class TextDelta:
    """Text that is final and follows what came before; never empty."""

    text: str


@dataclass(frozen=True)
class TextFinished:
    """A request's last event. `error` is one sentence, and None unless the reason is "error"."""

    finish_reason: FinishReason
    error: str | None
    usage: Usage


TextEvent = TextDelta | TextFinished


class TextStream:
    """One request's token ids to text as they come, ended by a stop string or by the engine."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        self._decoder = StreamDecoder(tokenizer)
        self._cutter = StopCutter(stop)

    @property
    def is_stopped(self) -> bool:
        """True once a stop string was found: what comes later is not part of the text."""
        return self._cutter.is_stopped

    def push(self, token_ids: Sequence[int]) -> str:
        return self._cutter.push(self._decoder.push(token_ids))

    def finish(self) -> str:
        """What was held back: half characters, and what could have become a stop string."""
        return self._cutter.push(self._decoder.finish()) + self._cutter.finish()


class TextGenerator:
    """Runs text requests on an engine. Thread-safe."""

    def __init__(self, engine: Engine, loaded: LoadedModel) -> None:
        self._engine = engine
        self._loaded = loaded
        template = loaded.chat_template
        self._chat_prompt = None if template is None else ChatPrompt(template, loaded.tokenizer)

    def chat_token_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The prompt for the assistant's next turn. Raises ChatTemplateError or TooLongError with one sentence."""
        if self._chat_prompt is None:
            raise ChatTemplateError(f"The model {self._loaded.name} has no chat template; send a plain prompt instead.")
        return self._chat_prompt.token_ids(messages, self._refuse_what_cannot_fit)

    def prompt_token_ids(self, prompt: str) -> list[int]:
        """Whoever sends a plain prompt writes the markers, too: special tokens in it become themselves.

        Raises TooLongError.
        """
        self._refuse_what_cannot_fit(prompt)
        return self._loaded.tokenizer.encode(prompt)

    def submit(self, request: GenerationRequest, on_event: Callable[[TextEvent], None]) -> None:
        """Start a request; its text and its end come to `on_event` from the engine's thread, which must not block.

        Raises RequestError, or its BusyError, as the engine does.
        """
        self._engine.submit(request, _Relay(self._engine, self._loaded.tokenizer, request, on_event))

    def abort(self, request_id: str) -> None:
        self._engine.abort(request_id)

    def _refuse_what_cannot_fit(self, text: str) -> None:
        """Before it is tokenized: 4 MB, the most that is taken, would be ten seconds of a core."""
        least, most = self._loaded.tokenizer.least_tokens(text), self._engine.max_request_tokens
        if least > most:
            raise TooLongError(f"The prompt has at least {least:,} tokens; with its answer it may have {most:,} here.")


class _Relay:
    """Listens to one request's tokens and tells its text. Called by the engine's thread only."""

    def __init__(
        self, engine: Engine, tokenizer: Tokenizer, request: GenerationRequest, on_event: Callable[[TextEvent], None]
    ) -> None:
        self._engine = engine
        self._request_id = request.request_id
        self._stream = TextStream(tokenizer, request.sampling.stop)
        self._on_event = on_event

    def __call__(self, event: Event) -> None:
        if isinstance(event, TokenEvent):
            self._hear(event.token_ids)
        else:
            self._end(event)

    def _hear(self, token_ids: Sequence[int]) -> None:
        self._tell(self._stream.push(token_ids))
        if self._stream.is_stopped:
            self._engine.abort(self._request_id, finish_reason="stop")

    def _end(self, event: FinishedEvent) -> None:
        self._tell(self._stream.finish())
        # The stop string may have come with the very token that ended the request by its length.
        is_stop = self._stream.is_stopped and event.finish_reason != "error"
        self._on_event(TextFinished("stop" if is_stop else event.finish_reason, event.error, event.usage))

    def _tell(self, text: str) -> None:
        if text:
            self._on_event(TextDelta(text))
