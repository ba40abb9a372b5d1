"""/v1: the endpoints, and an answer in OpenAI's shape for every other address and method under it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed, JsonResponse
from django.urls import URLPattern, path, re_path

from dashboard.api.app import api
from dashboard.api.errors import ApiError, unknown_host

View = Callable[..., Any]
_SHOWN = 100  # characters of an address that is not there


async def description(request: HttpRequest) -> HttpResponseBase:
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    return JsonResponse(api.get_openapi_schema(path_prefix="/v1/"))


async def unknown(request: HttpRequest, rest: str) -> HttpResponseBase:
    return ApiError(404, f"There is no {request.method} /v1/{rest[:_SHOWN]}.", code="unknown_url").response()


def _outside_of_django(view: View) -> View:
    """/v1 says for itself who may come in: no CSRF cookie and no redirect to the login page before that."""
    view = _with_known_host(_with_own_405(view))
    view.csrf_exempt = True  # type: ignore[attr-defined] # Django reads it
    view.login_required = False  # type: ignore[attr-defined] # Django reads it
    return view


def _with_known_host(view: View) -> View:
    @wraps(view)
    async def wrapped(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        try:
            request.get_host()
        except DisallowedHost:
            return unknown_host().response()
        return await view(request, **arguments)  # type: ignore[no-any-return] # views answer with responses

    return wrapped


def _with_own_405(view: View) -> View:
    """HEAD is answered as GET; the server leaves out the body, as for every HEAD."""

    @wraps(view)
    async def wrapped(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        is_head = request.method == "HEAD"
        request.method = "GET" if is_head else request.method
        try:
            response: HttpResponseBase = await view(request, **arguments)
        finally:
            request.method = "HEAD" if is_head else request.method
        return _told_405(request, response["Allow"]) if response.status_code == 405 else response

    return wrapped


def _told_405(request: HttpRequest, methods: str) -> HttpResponseBase:
    allowed = methods.replace("GET", "GET, HEAD")
    told = ApiError(405, f"{request.path} takes {allowed}.", code="method_not_allowed").response()
    told["Allow"] = allowed
    return told


def _endpoint(pattern: Any) -> URLPattern:
    return path(str(pattern.pattern), _outside_of_django(pattern.callback), name=pattern.name)


_ninja_patterns: list[Any] = api.urls[0]
urlpatterns = [
    *(_endpoint(pattern) for pattern in _ninja_patterns if pattern.name != "api-root"),
    path("openapi.json", _outside_of_django(description), name="openapi"),
    re_path(r"^(?P<rest>[\s\S]*)$", _outside_of_django(unknown), name="unknown"),
]
