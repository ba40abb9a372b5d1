"""What somebody sees who tried too many passwords. django-axes counts and refuses, by the settings AXES_*."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def throttled(request: HttpRequest, *_: Any) -> HttpResponse:
    """The login form again, with one sentence, and when to come back."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    context = {"throttled_minutes": seconds // 60, "next": request.POST.get("next", "")}
    answer = render(request, "login.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    answer["Retry-After"] = str(seconds)
    return answer
