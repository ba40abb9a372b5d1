"""What a client may ask for, in OpenAI's words. What this server cannot do is refused with a sentence, not ignored."""

import json
from typing import Annotated, Any, Literal, Self

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

MAX_STOPS = 4
MAX_STOP_LENGTH = 256
MAX_SALT_LENGTH = 256
MAX_NUMBER = 2**31 - 1  # above any context length or vocabulary

# Fields that would change the answer if they were honoured, and the values at which they change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
}


class _Strict(Schema):
    model_config = ConfigDict(strict=True, extra="ignore")


def _whole(text: Any) -> Any:
    """JSON can name one half of a surrogate pair, which no tokenizer and no UTF-8 has."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("The text holds half a character: a UTF-16 surrogate without the other one.") from None
    return text


Text = Annotated[str, BeforeValidator(_whole)]
TokenId = Annotated[int, Field(ge=0, le=MAX_NUMBER)]


class TextPart(_Strict):
    type: Literal["text"]
    text: Text


class Message(_Strict):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[TextPart] | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _text_only(cls, value: Any) -> Any:
        kinds = [part.get("type") for part in value if isinstance(part, dict)] if isinstance(value, list) else []
        if others := [kind for kind in kinds if kind != "text"]:
            raise ValueError(f"This model reads text only; a content part has the type {json.dumps(others[0])}.")
        return value

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.content is None and self.role != "assistant":
            raise ValueError(f"A {self.role} message needs “content”: a string or a list of text parts.")
        return self


class StreamOptions(_Strict):
    include_usage: bool = False


class Extension(_Strict):
    """Tierscope's own field in a request."""

    return_prompt_tokens: bool = False


class _Completion(_Strict):
    model: str = Field(min_length=1, max_length=200)
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, description="0 keeps every token.")
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: Text | list[Text] | None = None
    max_tokens: int | None = Field(None, ge=1, le=MAX_NUMBER)
    cache_salt: Text | None = Field(
        None, description="Only prompts with the same salt, of the same tenant, reuse each other's blocks."
    )
    tierscope: Extension = Extension()

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_would_be_ignored(cls, data: Any) -> Any:
        given = getattr(data, "_obj", data)
        if isinstance(given, dict):
            for name, neutral in _NEUTRAL.items():
                if name in given and given[name] is not None and given[name] not in neutral:
                    sentence = f"“{name}” is not supported here; leave it out or send {json.dumps(neutral[0])}."
                    raise PydanticCustomError("value_error", "{sentence}", {"sentence": sentence, "param": name})
        return data

    @field_validator("stop", mode="before")
    @classmethod
    def _few_short_stops(cls, value: Any) -> Any:
        stops = [value] if isinstance(value, str) else value
        is_list = isinstance(stops, list) and all(isinstance(stop, str) for stop in stops)
        if value is not None and not (is_list and len(stops) <= MAX_STOPS and all(map(_is_stop, stops))):
            raise ValueError(
                f"“stop” has to be a string or a list of up to {MAX_STOPS}, each of 1 to {MAX_STOP_LENGTH} characters."
            )
        return value

    @field_validator("cache_salt", mode="before")
    @classmethod
    def _short_salt(cls, value: Any) -> Any:
        if value is not None and not (isinstance(value, str) and 1 <= len(value) <= MAX_SALT_LENGTH):
            raise ValueError(f"“cache_salt” has to be a string of 1 to {MAX_SALT_LENGTH} characters.")
        return value

    def stops(self) -> list[str]:
        if isinstance(self.stop, str):
            return [self.stop]
        return list(self.stop or [])

    def includes_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def sampling(self, max_tokens: int | None) -> dict[str, Any]:
        """OpenAI's defaults; `max_tokens` None means up to the end of the model's context."""
        return {
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "top_p": 1.0 if self.top_p is None else self.top_p,
            "top_k": self.top_k or 0,
            "seed": self.seed,
            "stop": self.stops(),
            "max_tokens": max_tokens,
        }


class ChatRequest(_Completion):
    messages: list[Message] = Field(min_length=1, max_length=2048)
    max_completion_tokens: int | None = Field(None, ge=1, le=MAX_NUMBER)

    def job_fields(self) -> dict[str, Any]:
        messages = [{"role": _ROLES.get(m.role, m.role), "content": m.text()} for m in self.messages]
        return {"messages": messages, "sampling": self.sampling(self.max_completion_tokens or self.max_tokens)}


class CompletionRequest(_Completion):
    prompt: Text | list[Text] | list[TokenId] | list[list[TokenId]]

    def job_fields(self) -> dict[str, Any]:
        prompt: Any = self.prompt
        if isinstance(prompt, list) and isinstance(prompt[0], str | list):
            prompt = prompt[0]
        field = "prompt" if isinstance(prompt, str) else "prompt_token_ids"
        # 16 is OpenAI's default for this older endpoint.
        return {field: prompt, "sampling": self.sampling(self.max_tokens or 16)}

    @field_validator("prompt", mode="before")
    @classmethod
    def _one_prompt(cls, value: Any) -> Any:
        if value in ("", [], [[]], [""]):
            raise ValueError("“prompt” is empty; send some text or token ids.")
        prompts = value if isinstance(value, list) and not _are_token_ids(value) else [value]
        if len(prompts) > 1 and all(isinstance(prompt, str) or _are_token_ids(prompt) for prompt in prompts):
            raise ValueError("One prompt a request, please: “prompt” holds several.")
        if len(prompts) != 1 or not (isinstance(prompts[0], str) or _are_token_ids(prompts[0])):
            raise ValueError(f"“prompt” has to be text, or a list of token ids from 0 to {MAX_NUMBER:,}.")
        return value


def _are_token_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each <= MAX_NUMBER for each in value)


def _is_stop(stop: str) -> bool:
    return 1 <= len(stop) <= MAX_STOP_LENGTH


_ROLES = {"developer": "system"}
