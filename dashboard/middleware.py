"""WhiteNoise on the asynchronous path. Knows nothing about which files there are.

WhiteNoise's own middleware is synchronous only: in an ASGI process every request, also a stream that lasts a minute,
would hold a thread, and a client's disconnect would not reach the view.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.http.response import FileResponse, StreamingHttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

_CHUNK_BYTES = 64 * 1024


class AsyncWhiteNoiseMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if not iscoroutinefunction(self.get_response):
            return super().__call__(request)  # type: ignore[no-any-return]
        return self._answer(request)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        """Files are known from the start and come from the page cache: no thread is needed."""
        found = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if found is None:
            return await self.get_response(request)  # type: ignore[no-any-return]
        response = self.serve(found, request)
        return _async_file(response) if isinstance(response, FileResponse) else response


def _async_file(response: FileResponse) -> StreamingHttpResponse:
    """The same response with an asynchronous body, which ASGI streams without a warning."""
    body = b"".join(response.streaming_content)  # type: ignore[arg-type]
    streamed = StreamingHttpResponse(_chunks(body), status=response.status_code)
    streamed.headers = response.headers
    response.close()
    return streamed


async def _chunks(body: bytes) -> Any:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]
