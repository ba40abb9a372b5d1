"""/v1: the endpoints, and an answer in OpenAI's shape for every other address under it."""

from django.http import HttpRequest, HttpResponse
from django.urls import re_path
from django.views.decorators.csrf import csrf_exempt

from dashboard.api.app import api
from dashboard.api.errors import ApiError


@csrf_exempt
async def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    return ApiError(404, f"There is no {request.method} /v1/{rest}.", code="unknown_url").response()


_endpoints = api.urls[0]
urlpatterns = [*_endpoints, re_path(r"^(?P<rest>.*)$", unknown)]

# /v1 answers for itself who may come in: it must not redirect to the login page.
for pattern in urlpatterns:
    pattern.callback.login_required = False
