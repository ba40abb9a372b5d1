"""Run events into OpenAI's response objects, whole or in chunks. Knows nothing about HTTP or where events come from."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from dashboard.streams import Event


@dataclass(frozen=True)
class Shape:
    """How one answer is written: which endpoint's words, and what the caller asked to have in it."""

    id: str
    model: str
    created: int
    is_chat: bool
    includes_usage: bool = True
    returns_prompt: bool = False

    def _head(self, *, is_chunk: bool) -> dict[str, Any]:
        kind = ("chat.completion.chunk" if is_chunk else "chat.completion") if self.is_chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def whole(self, text: str, done: Event) -> dict[str, Any]:
        said: dict[str, Any] = {"text": text}
        if self.is_chat:
            said = {"message": {"role": "assistant", "content": text, "refusal": None}}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": done["finish_reason"]}
        return {**self._head(is_chunk=False), "choices": [choice], "usage": usage(done), **self._extension(done)}

    def first_chunks(self) -> list[dict[str, Any]]:
        if not self.is_chat:
            return []
        return [self._chunk({"delta": {"role": "assistant", "content": ""}}, None)]

    def text_chunk(self, text: str) -> dict[str, Any]:
        return self._chunk({"delta": {"content": text}} if self.is_chat else {"text": text}, None)

    def last_chunks(self, done: Event) -> list[dict[str, Any]]:
        """The finish reason, then usage where it was asked for; the extension rides on the very last one."""
        chunks = [self._chunk({"delta": {}} if self.is_chat else {"text": ""}, done["finish_reason"])]
        if self.includes_usage:
            chunks.append({**self._head(is_chunk=True), "choices": [], "usage": usage(done)})
        chunks[-1] |= self._extension(done)
        return chunks

    def _chunk(self, said: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head(is_chunk=True), "choices": [choice]} | ({"usage": None} if self.includes_usage else {})

    def _extension(self, done: Event) -> dict[str, Any]:
        return {"tierscope": {"prompt": done["prompt"]}} if self.returns_prompt else {}


def usage(done: Event) -> dict[str, Any]:
    """OpenAI's usage, and beside it which tier every cached prompt token came from."""
    told = done["usage"]
    return {
        "prompt_tokens": told["prompt_tokens"],
        "completion_tokens": told["generated_tokens"],
        "total_tokens": told["prompt_tokens"] + told["generated_tokens"],
        "prompt_tokens_details": {"cached_tokens": sum(told["hit_tokens"].values())},
        "tierscope": {
            "hit_tokens": told["hit_tokens"],
            "computed_tokens": told["computed_tokens"],
            "slowest_tier": told["slowest_tier"],
            "ttft_seconds": told["ttft_seconds"],
        },
    }


async def as_whole(events: AsyncIterator[Event], shape: Shape) -> dict[str, Any]:
    parts: list[str] = []
    async for event in events:
        if event["type"] == "done":
            return shape.whole("".join(parts), event)
        if event["type"] == "restart":
            parts.clear()
        else:
            parts.append(event["text"])
    raise AssertionError("a run ended without its last event")


async def as_chunks(events: AsyncIterator[Event], shape: Shape) -> AsyncIterator[dict[str, Any]]:
    for chunk in shape.first_chunks():
        yield chunk
    async for event in events:
        chunks = shape.last_chunks(event) if event["type"] == "done" else [shape.text_chunk(event["text"])]
        for chunk in chunks:
            yield chunk


def sse(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


SSE_END = b"data: [DONE]\n\n"
