"""Refuses bodies above a limit while they arrive: Django would first store them on disk, whatever their size.

Plain ASGI; knows nothing about Django.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class _TooLargeError(Exception):
    pass


class BodyLimit:
    """ASGI middleware: answers 413 in OpenAI's error shape instead of reading more than `max_bytes`."""

    def __init__(self, app: App, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await _lifespan(receive, send)
        if _announced(scope) > self._max_bytes:
            return await self._refuse(send)
        try:
            await self._app(scope, self._counting(receive), send)
        except _TooLargeError:
            await self._refuse(send)

    def _counting(self, receive: Receive) -> Receive:
        num_bytes = 0

        async def counted() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > self._max_bytes:
                raise _TooLargeError
            return message

        return counted

    async def _refuse(self, send: Send) -> None:
        message = f"The body is larger than the {self._max_bytes} bytes this server reads."
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": "body_too_large"}
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})


def _announced(scope: Message) -> int:
    """The Content-Length header; 0 where there is none (then the bytes are counted as they come)."""
    lengths = [value for name, value in scope.get("headers", ()) if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


async def _lifespan(receive: Receive, send: Send) -> None:
    """Django does not speak the lifespan protocol; there is nothing to do at either end."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
