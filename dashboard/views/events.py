"""`/events`: tells a page, as server-sent events, that something new has been recorded. Carries no numbers.

A page that hears nothing (no Valkey, a proxy that buffers) falls back to polling by itself.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import redis
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from dashboard import stopping, valkey
from dashboard.views.answers import LOG_IN_FIRST, refusal

# A comment now and then keeps proxies from closing an idle stream and shows us that the browser is gone.
_HEARTBEAT_SECONDS = 8
# An open page must not hold up a web process that is asked to stop.
_LOOK_SECONDS = 1
# Then the browser reconnects by itself: a stream does not outlive its session for long.
_LONGEST_SECONDS = 15 * 60

_num_open = 0  # streams of this process, all in its one event loop


@login_not_required
async def events(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """`event: tick` after each recording; `event: lost` when Valkey cannot be reached, then the stream ends.

    503 where `valkey.MAX_EVENT_STREAMS` pages listen already: /v1 has connections of its own and notices nothing.
    """
    user = await request.auser()
    if not user.is_authenticated:
        return refusal(401, LOG_IN_FIRST)
    if _num_open >= valkey.MAX_EVENT_STREAMS:
        answer = refusal(503, f"{_num_open} pages listen already; this one asks by itself every few seconds instead.")
        answer["Retry-After"] = "60"
        return answer
    response = StreamingHttpResponse(_counted(_ticks()), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _counted(ticks: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    """Counts what is being sent, also where its browser goes away in the middle."""
    global _num_open
    _num_open += 1
    try:
        async with aclosing(ticks):
            async for tick in ticks:
                yield tick
    finally:
        _num_open -= 1


async def _ticks() -> AsyncGenerator[str, None]:
    yield "retry: 3000\n\n"
    ends_at = time.monotonic() + _LONGEST_SECONDS
    try:
        async with valkey.event_client().pubsub() as channel:
            await channel.subscribe(valkey.TICK_CHANNEL)
            await channel.get_message(timeout=_HEARTBEAT_SECONDS)  # the confirmation: from here on nothing is missed
            yield "event: hello\ndata: {}\n\n"
            said_at = time.monotonic()
            while time.monotonic() < ends_at and not stopping.process.has_begun():
                message = await channel.get_message(ignore_subscribe_messages=True, timeout=_LOOK_SECONDS)
                if message or time.monotonic() - said_at >= _HEARTBEAT_SECONDS:
                    yield "event: tick\ndata: {}\n\n" if message else ": still here\n\n"
                    said_at = time.monotonic()
    except (redis.RedisError, OSError):
        yield "event: lost\ndata: {}\n\n"
