"""Who may use /v1: an API key as bearer token, or a staff session of our own pages (then with CSRF token)."""

from dataclasses import dataclass
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import aget_user
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.cache import cache
from django.db import close_old_connections
from django.http import HttpRequest
from django.utils import timezone
from ninja.utils import check_csrf

from dashboard.api.errors import ApiError
from dashboard.services import api_keys

# A look-up takes 1–5 ms of a first token's time. A key that was revoked is refused at most this much later.
REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True)
class Caller:
    """`api_key_id` is None for a session, which shares the common pool as keys without a tenant do."""

    api_key_id: int | None
    tenant: str = ""


async def authenticate(request: HttpRequest) -> Caller:
    """Raises ApiError 401 or 403."""
    header = request.headers.get("Authorization", "")
    if header:
        return await _by_key(header)
    return await _by_session(request)


async def _by_key(header: str) -> Caller:
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(401, "The Authorization header has to read “Bearer” and an API key.", code="invalid_api_key")
    remembered_as = f"api-key:{api_keys.hash_key(key.strip())}"
    caller: Caller | None = cache.get(remembered_as)
    if caller is None:
        caller = await sync_to_async(_find_and_record, thread_sensitive=False)(key.strip())
        if caller is None:
            raise ApiError(401, "This API key is unknown or was revoked.", code="invalid_api_key")
        cache.set(remembered_as, caller, REMEMBERED_SECONDS)
    return caller


def _find_and_record(key: str) -> Caller | None:
    """In one of the process's few long-lived threads, which keep their database connection: 1 ms less than in Django's
    thread for each request, which opens its own.
    """
    close_old_connections()
    api_key = api_keys.find_api_key(key)
    if api_key is None:
        return None
    api_keys.record_use(api_key, timezone.now())
    return Caller(api_key.pk, api_key.tenant)


async def _session_user(request: HttpRequest) -> AbstractBaseUser | AnonymousUser:
    """/v1 does without the middlewares that put a session and a user into the request."""
    session_key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if session_key is None:
        return AnonymousUser()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return await aget_user(request)


async def _by_session(request: HttpRequest) -> Caller:
    user = await _session_user(request)
    if not user.is_authenticated:
        raise ApiError(
            401, "Send an API key: “Authorization: Bearer …”. Keys are made in the admin.", code="missing_api_key"
        )
    if not getattr(user, "is_staff", False):
        raise ApiError(403, "This account may not send requests to the model.", code="not_staff")
    if request.method not in ("GET", "HEAD") and check_csrf(request) is not None:
        raise ApiError(403, "The CSRF token is missing or wrong; reload the page.", code="csrf_failed")
    return Caller(None)
