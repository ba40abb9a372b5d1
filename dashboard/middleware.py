"""Two middlewares for an asynchronous web process. Know nothing about what is answered.

Django runs each of its own middlewares' methods in a thread, 0.1 to 0.2 ms a hop: 3 ms a request with the usual ten.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.http.response import StreamingHttpResponse
from django.urls import resolve
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

_CHUNK_BYTES = 64 * 1024
_API_PREFIX = "/v1/"

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


@sync_and_async_middleware
def api_shortcut_middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Answer]:
    """/v1 goes straight to its view: it has its own authentication (dashboard/api/auth.py) and no use for the rest."""
    if not iscoroutinefunction(get_response):
        return get_response

    async def shortcut(request: HttpRequest) -> HttpResponseBase:
        if not f"{request.path_info}/".startswith(_API_PREFIX):
            return await get_response(request)  # type: ignore[no-any-return] # Django's chain tells no types
        match = request.resolver_match = resolve(request.path_info)
        response: HttpResponseBase = await match.func(request, *match.args, **match.kwargs)
        response["X-Content-Type-Options"] = "nosniff"
        return response

    return shortcut


class AsyncWhiteNoiseMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc] # it has no types
    """WhiteNoise's own middleware is synchronous only: in an ASGI process every request, also a stream that lasts a
    minute, would hold a thread, and a client's disconnect would not reach the view.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        if not iscoroutinefunction(self.get_response):
            return super().__call__(request)  # type: ignore[no-any-return] # as above
        return self._answer(request)

    def add_mime_headers(self, headers: Any, path: str, url: str) -> None:
        """Django's SecurityMiddleware comes after it, and would take two changes of threads to add this."""
        super().add_mime_headers(headers, path, url)
        headers["X-Content-Type-Options"] = "nosniff"

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        """Files are known from the start and come from the page cache: no thread is needed."""
        found = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if found is None:
            return await self.get_response(request)  # type: ignore[no-any-return] # as above
        return _with_async_body(self.serve(found, request))


def _with_async_body(response: StreamingHttpResponse) -> StreamingHttpResponse:
    body = b"".join(response.streaming_content)  # type: ignore[arg-type] # files are read synchronously
    streamed = StreamingHttpResponse(_chunks(body), status=response.status_code)
    streamed.headers = response.headers
    response.close()
    return streamed


async def _chunks(body: bytes) -> Any:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]
