"""Who may read /api/v1: a read token as bearer token, or a staff session of our own pages."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import timezone
from ninja.security.base import AuthBase

from dashboard.api.errors import ApiError
from dashboard.services import api_keys

_SEND = "Send a read token: “Authorization: Bearer …”. Tokens are made in the admin."


@dataclass(frozen=True)
class Reader:
    """The token's or the user's name."""

    name: str


class TokenOrSession(AuthBase):
    """What ninja asks who somebody is; the document says “bearer” of it. Raises ApiError 401 or 403."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Reader:
        header = request.headers.get("Authorization", "")
        return _by_token(header) if header else _by_session(request)


def _by_token(header: str) -> Reader:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ApiError(401, "The Authorization header has to read “Bearer” and a read token.", code="invalid_token")
    token = api_keys.find_read_token(text.strip())
    if token is None:
        raise ApiError(401, _refusal(text.strip()), code="invalid_token")
    api_keys.record_use(token, timezone.now())
    return Reader(token.name)


def _refusal(text: str) -> str:
    if api_keys.find_api_key(text) is not None:
        return "This is an API key, which sends traffic to /v1; reading numbers takes a read token from the admin."
    return "This read token is unknown or was revoked."


def _by_session(request: HttpRequest) -> Reader:
    if not request.user.is_authenticated:
        raise ApiError(401, _SEND, code="missing_token")
    if not request.user.is_staff:
        raise ApiError(403, "This account is not staff: it may look at the pages, not read /api/v1.", code="not_staff")
    return Reader(request.user.get_username())
