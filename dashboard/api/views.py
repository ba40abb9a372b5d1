"""The endpoints of /v1. Thin: schemas check, dispatch answers, answers.py shapes."""

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import redis
from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from ninja import Router

from dashboard import valkey
from dashboard.api.answers import SSE_END, Shape, as_chunks, as_whole, sse
from dashboard.api.auth import Caller
from dashboard.api.directory import EngineDirectory
from dashboard.api.errors import ApiError
from dashboard.api.schemas import ChatRequest, CompletionRequest
from dashboard.jobs import Job
from dashboard.services.dispatch import Dispatcher, DispatchError, Limits
from dashboard.streams import Event

_SHOWN = 100  # characters of a name that is not there

router = Router()
directory = EngineDirectory()
dispatcher = Dispatcher(directory, Limits.from_settings())


@router.post("/chat/completions", summary="Answer a conversation")
async def chat_completions(request: HttpRequest, body: ChatRequest) -> HttpResponseBase:
    return await _answer(request, body, is_chat=True)


@router.post("/completions", summary="Continue a text or token ids")
async def completions(request: HttpRequest, body: CompletionRequest) -> HttpResponseBase:
    return await _answer(request, body, is_chat=False)


@router.get("/models", summary="The models that running engines serve")
async def models(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"object": "list", "data": [_model(*each) for each in sorted((await _models()).items())]})


@router.get("/models/{path:name}", summary="One model")
async def model(request: HttpRequest, name: str) -> JsonResponse:
    served = await _models()
    if name not in served:
        raise ApiError(404, f"There is no model “{name[:_SHOWN]}” here.", param="model", code="model_not_found")
    return JsonResponse(_model(name, served[name]))


async def _answer(request: HttpRequest, body: ChatRequest | CompletionRequest, *, is_chat: bool) -> HttpResponseBase:
    caller: Caller = request.auth  # type: ignore[attr-defined] # ninja sets it
    request_id = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
    received_at = time.time()
    job = Job(
        request_id=request_id,
        model=body.model,
        received_at=received_at,
        return_prompt_tokens=body.tierscope.return_prompt_tokens,
        api_key_id=caller.api_key_id,
        tenant=caller.tenant,
        cache_salt=body.cache_salt or "",
        **body.job_fields(),
    )
    shape = Shape(
        id=request_id,
        model=body.model,
        created=int(received_at),
        is_chat=is_chat,
        includes_usage=not body.stream or body.includes_usage(),
        returns_prompt=body.tierscope.return_prompt_tokens,
    )
    events = dispatcher.answer(job, can_restart=not body.stream)
    if body.stream:
        return await _streamed(events, shape)
    async with aclosing(events):
        try:
            return JsonResponse(await as_whole(events, shape))
        except DispatchError as refused:
            raise _api_error(refused) from None


async def _streamed(events: AsyncGenerator[Event, None], shape: Shape) -> StreamingHttpResponse:
    """Waits for the first event, so that a refusal still has its own status."""
    try:
        first = await anext(events)
    except DispatchError as refused:
        raise _api_error(refused) from None
    response = StreamingHttpResponse(_sse(_chained(first, events), shape), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _sse(events: AsyncGenerator[Event, None], shape: Shape) -> AsyncIterator[bytes]:
    async with aclosing(events):
        try:
            async for chunk in as_chunks(events, shape):
                yield sse(chunk)
        except DispatchError as refused:
            yield sse(_api_error(refused).body())
            return
    yield SSE_END


async def _chained(first: Event, rest: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


async def _models() -> dict[str, int]:
    """Each model that is served, with since when: the start of the first of its engines."""
    try:
        engines = await directory.engines(valkey.async_client())
    except redis.RedisError:
        raise ApiError(
            503, "Valkey, the message broker, cannot be reached; try again in a moment.", code="broker_unavailable"
        ) from None
    newest_first = sorted(engines.values(), key=lambda engine: -engine.started_at)
    return {engine.model_name: engine.started_at for engine in newest_first if engine.status == "ready"}


def _model(name: str, since: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": since, "owned_by": "tierscope"}


def _api_error(refused: DispatchError) -> ApiError:
    param = "model" if refused.code == "model_not_found" else None
    return ApiError(
        refused.status,
        refused.message,
        code=refused.code,
        param=param,
        retry_after_seconds=refused.retry_after_seconds,
    )
