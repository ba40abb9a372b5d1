"""Times in the zone of whoever looks, on pages and in the admin: the browser names it in a cookie (static/js/zone.js).

Knows nothing about what is shown. The database and /v1 stay in UTC.
"""

import zoneinfo
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware

COOKIE = "tierscope_zone"
_FORMAT = "%Y-%m-%d %H:%M:%S"


def in_words(moment: datetime) -> str:
    """In the zone of whoever looks; which one that is stands once on every page."""
    return timezone.localtime(moment).strftime(_FORMAT)


def zone_of(request: HttpRequest) -> tzinfo:
    """UTC where the cookie is missing or names no zone."""
    try:
        return zoneinfo.ZoneInfo(request.COOKIES.get(COOKIE) or "UTC")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


@sync_and_async_middleware
def zone_middleware(
    get_response: Callable[[HttpRequest], Any],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            with timezone.override(zone_of(request)):
                return await get_response(request)  # type: ignore[no-any-return] # Django's chain tells no types

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_of(request)):
            return get_response(request)  # type: ignore[no-any-return] # as above

    return synchronous
