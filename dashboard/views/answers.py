"""JSON answers for the pages' own scripts: 401 instead of a redirect, 400 with one sentence instead of a traceback."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse

from dashboard.chunks import ChunkError
from dashboard.views.params import BadParameterError

_log = logging.getLogger(__name__)
STAFF_ONLY = "Only staff may do this."
LOG_IN_FIRST = "Log in first: your session has ended."


def refusal(status: int, sentence: str) -> JsonResponse:
    response = JsonResponse({"error": sentence}, status=status)
    response["Cache-Control"] = "no-store"
    return response


def json_view(
    method: str = "GET", *, staff: bool = False
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., HttpResponse]]:
    """Makes a view of a function that returns a dict; answers other methods, strangers and bad parameters itself."""

    def decorate(build: Callable[..., dict[str, Any]]) -> Callable[..., HttpResponse]:
        @wraps(build)
        def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return refusal(401, LOG_IN_FIRST)
            if staff and not getattr(request.user, "is_staff", False):
                return refusal(403, STAFF_ONLY)
            if request.method != method:
                return refusal(405, f"This address answers {method} only.")
            try:
                response = JsonResponse(build(request, **kwargs))
            except BadParameterError as error:
                return refusal(400, str(error))
            except ChunkError as error:
                _log.error("%s", error)
                return refusal(500, f"{error} docs/operating.md says what to do.")
            response["Cache-Control"] = "no-store"
            return response

        return login_not_required(view)

    return decorate
