"""/api/v1: the endpoints, their document, and an answer in their shape for every other address and method.

An answer may be kept by who asked, and is asked for again each time: unchanged it is a 304 without a body.
"""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, re_path
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from dashboard.api.errors import ApiError
from dashboard.read_api.app import api

View = Callable[..., HttpResponse]
_SHOWN = 100  # characters of an address that is not there
_METHODS = ("GET", "HEAD")


def description(request: HttpRequest) -> HttpResponse:
    return JsonResponse(api.get_openapi_schema(path_prefix="/api/v1/"))


def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    return ApiError(
        404, f"There is no /api/v1/{rest[:_SHOWN]}; /api/v1/openapi.json says what is.", code="unknown_url"
    ).response()


def _for_programs(view: View) -> View:
    """No redirect to the login page, no CSRF cookie; nothing can be written here."""

    @wraps(view)
    def wrapped(request: HttpRequest, **arguments: Any) -> HttpResponse:
        if request.method not in _METHODS:
            refused = ApiError(405, f"{request.path} takes GET, HEAD.", code="method_not_allowed").response()
            refused["Allow"] = ", ".join(_METHODS)
            return refused
        asked_as, request.method = request.method, "GET"
        try:
            response = view(request, **arguments)
        finally:
            request.method = asked_as
        return _revalidated(request, response)

    return login_not_required(csrf_exempt(wrapped))


def _revalidated(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Authorization", "Cookie"])
    if response.status_code != 200:
        response["Cache-Control"] = "no-store"
        return response
    response["Cache-Control"] = "private, no-cache"
    response["ETag"] = f'"{hashlib.blake2b(response.content, digest_size=16).hexdigest()}"'
    return get_conditional_response(request, etag=response["ETag"], response=response) or response


def _endpoint(pattern: Any) -> URLPattern:
    return path(str(pattern.pattern), _for_programs(pattern.callback), name=pattern.name)


_ninja_patterns: list[Any] = api.urls[0]
urlpatterns = [
    *(_endpoint(pattern) for pattern in _ninja_patterns if pattern.name != "api-root"),
    path("openapi.json", _for_programs(description), name="read-openapi"),
    re_path(r"^(?P<rest>[\s\S]*)$", _for_programs(unknown), name="read-unknown"),
]
