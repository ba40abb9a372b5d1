"""A conversation to the prompt that a model was trained on, by the model's own Jinja template.

Templates come with weights from elsewhere: they run in Jinja's sandbox. Knows nothing about tokens.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment


class ChatTemplateError(ValueError):
    """The template, or the conversation for this template, cannot be used; one sentence says why."""

    code = "invalid_request"


class ChatTemplate:
    """A model's chat template. `bos_token` and `eos_token` are the texts that it may write. Thread-safe."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
        environment.globals |= {"raise_exception": _raise, "strftime_now": _now}
        environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": False}
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ChatTemplateError(f"The model's chat template is not valid Jinja: {error.message}.") from error

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The prompt for the assistant's next turn. Messages have `role` and `content`, both text."""
        if not messages:
            raise ChatTemplateError("The conversation is empty; expected at least one message.")
        try:
            return self._template.render(messages=list(messages), add_generation_prompt=True, **self._tokens)
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise ChatTemplateError(f"The model's chat template cannot render this conversation: {error}") from error


def _raise(message: str) -> NoReturn:
    raise ChatTemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)
