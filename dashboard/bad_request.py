"""Django's own refusals of a request, before any view is asked: for programs in the shape of their API's errors."""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.views.defaults import bad_request

from dashboard.api.errors import ApiError, unknown_host

_OF_PROGRAMS = ("/v1/", "/api/v1/")


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The handler of 400s."""
    if not f"{request.path_info}/".startswith(_OF_PROGRAMS):
        return bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        return unknown_host().response()
    return ApiError(400, "This server does not read such a request.", code="invalid_request").response()
