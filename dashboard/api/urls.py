"""/v1: the endpoints, and an answer in OpenAI's shape for every other address and method under it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import URLPattern, path, re_path

from dashboard.api.app import api
from dashboard.api.errors import ApiError

View = Callable[..., Any]


async def description(request: HttpRequest) -> HttpResponseBase:
    return JsonResponse(api.get_openapi_schema(path_prefix="/v1/"))


async def unknown(request: HttpRequest, rest: str) -> HttpResponseBase:
    return ApiError(404, f"There is no {request.method} /v1/{rest}.", code="unknown_url").response()


def _outside_of_django(view: View) -> View:
    """/v1 says for itself who may come in: no CSRF cookie and no redirect to the login page before that."""
    view.csrf_exempt = True  # type: ignore[attr-defined]
    view.login_required = False  # type: ignore[attr-defined]
    return view


def _with_own_405(view: View) -> View:
    @wraps(view)
    async def wrapped(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        response: HttpResponseBase = await view(request, **arguments)
        if response.status_code != 405:
            return response
        told = ApiError(405, f"{request.path} takes {response['Allow']}.", code="method_not_allowed").response()
        told["Allow"] = response["Allow"]
        return told

    return wrapped


def _endpoint(pattern: Any) -> URLPattern:
    return path(str(pattern.pattern), _outside_of_django(_with_own_405(pattern.callback)), name=pattern.name)


_ninja_patterns: list[Any] = api.urls[0]
urlpatterns = [
    *(_endpoint(pattern) for pattern in _ninja_patterns if pattern.name != "api-root"),
    path("openapi.json", _outside_of_django(description), name="openapi"),
    re_path(r"^(?P<rest>.*)$", _outside_of_django(unknown), name="unknown"),
]
