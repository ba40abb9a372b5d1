"""The ninja API behind /api/v1. Its errors have the shape of /v1's; its document is at /api/v1/openapi.json."""

import logging

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from dashboard.api.errors import ApiError, unexpected
from dashboard.chunks import ChunkError
from dashboard.read_api.auth import TokenOrSession
from dashboard.read_api.views import router

logger = logging.getLogger(__name__)

api = NinjaAPI(
    title="Tierscope read API",
    version="1",
    description="Numbers of all engines, for programs. Send a read token as “Authorization: Bearer …”; staff may also "
    "read it with the session of their browser. Every count is an exact integer. An error is "
    '{"error": {"message", "type", "param", "code"}}.',
    docs_url=None,  # the interactive page would load its scripts from another host
    openapi_url=None,
    auth=TokenOrSession(),
    urls_namespace="read-api",
)
api.add_router("", router)


@api.exception_handler(ApiError)
def on_api_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return error.response()


@api.exception_handler(ValidationError)
def on_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """The first parameter that is missing or no number of the kind."""
    first = error.errors[0]
    param, said = str(first["loc"][-1]), str(first["msg"])
    if first["type"] == "missing":
        return ApiError(400, f"“{param}” is missing.", code="missing_field", param=param).response()
    sentence = f"“{param}” is not acceptable: {said[:1].lower()}{said[1:]}."
    return ApiError(400, sentence, code="invalid_value", param=param).response()


@api.exception_handler(AuthenticationError)
def on_unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return ApiError(401, "Send a read token: “Authorization: Bearer …”.", code="missing_token").response()


@api.exception_handler(HttpError)
def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return ApiError(error.status_code, str(error.message), code="invalid_request").response()


@api.exception_handler(ChunkError)
def on_unreadable(request: HttpRequest, error: ChunkError) -> HttpResponse:
    logger.error("%s", error)
    return ApiError(500, f"{error} docs/operating.md says what to do.", code="internal_error").response()


@api.exception_handler(Exception)
def on_unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("unexpected error in %s", request.path, exc_info=error)
    return unexpected(error).response()
