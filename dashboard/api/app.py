"""The ninja API behind /v1, and how its errors are told. Its OpenAPI document is at /v1/openapi.json."""

import logging

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from dashboard.api.auth import authenticate
from dashboard.api.body import BodyParser
from dashboard.api.errors import ApiError, from_validation, unexpected
from dashboard.api.views import router

logger = logging.getLogger(__name__)

# The interactive page would load its scripts from another host.
api = NinjaAPI(
    title="Tierscope",
    version="1",
    docs_url=None,
    openapi_url=None,
    auth=authenticate,
    urls_namespace="v1",
    parser=BodyParser(),
)
api.add_router("", router)


@api.exception_handler(ApiError)
def on_api_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return error.response()


@api.exception_handler(ValidationError)
def on_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return from_validation(error.errors).response()


@api.exception_handler(HttpError)
def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """ninja wraps what the body's parser raised."""
    refusal = error.__cause__
    if not isinstance(refusal, ApiError):
        refusal = ApiError(error.status_code, str(error.message), code="invalid_body")
    return refusal.response()


@api.exception_handler(AuthenticationError)
def on_unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return ApiError(401, "Send an API key: “Authorization: Bearer …”.", code="missing_api_key").response()


@api.exception_handler(RequestDataTooBig)
def on_too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return ApiError(413, "The body is larger than this server reads.", code="body_too_large").response()


@api.exception_handler(Exception)
def on_unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("unexpected error in %s", request.path, exc_info=error)
    return unexpected(error).response()
