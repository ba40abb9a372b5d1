"""API keys and read tokens: made once, shown once, stored as a SHA-256 hash. Knows nothing about HTTP."""

import hashlib
import logging
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q

from dashboard.models import ApiKey, ReadToken
from dashboard.secret_files import read_or_create
from dashboard.tenants import check_tenant

logger = logging.getLogger(__name__)
S = TypeVar("S", bound=ApiKey | ReadToken)

DEFAULT_KEY_NAME = "default"
_USED_EVERY = timedelta(minutes=1)


def create_api_key(name: str, tenant: str = "") -> tuple[ApiKey, str]:
    """The stored row and the key itself, which nobody can read again.

    Raises ValueError when the name is taken or the tenant is no name of one.
    """
    check_tenant(tenant)
    key = new_key()
    return _store(ApiKey(name=name, tenant=tenant), key, "an API key"), key


def find_api_key(key: str) -> ApiKey | None:
    """The active key that hashes to the same; one indexed look-up whatever is asked."""
    return ApiKey.objects.filter(hashed_key=hash_key(key), is_active=True).first()


def create_read_token(name: str) -> tuple[ReadToken, str]:
    """The stored row and the token itself, which nobody can read again. Raises ValueError when the name is taken."""
    token = new_key("tsr-")
    return _store(ReadToken(name=name), token, "a read token"), token


def find_read_token(token: str) -> ReadToken | None:
    """The active token that hashes to the same; an API key is none, so that it reads nothing."""
    return ReadToken.objects.filter(hashed_key=hash_key(token), is_active=True).first()


def record_use(secret: ApiKey | ReadToken, now: datetime) -> None:
    """Notes when the key or token was last used, at most once a minute: a read-mostly row stays one.

    A database that cannot be written to is logged and refuses nobody.
    """
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USED_EVERY)
    if secret.last_used_at is None or secret.last_used_at < now - _USED_EVERY:
        try:
            type(secret)._default_manager.filter(stale, pk=secret.pk).update(last_used_at=now)
        except DatabaseError as error:
            kind = type(secret)._meta.verbose_name
            logger.warning("the use of the %s %s was not noted: %s", kind, secret.name, error)


def ensure_default_key(home: Path | None = None) -> bool:
    """Makes the key `default` and its file `api-key` (0600) at the first start; True where it did.

    A key that was revoked or deleted together with its file stays away once a row of that name exists.
    """
    if ApiKey.objects.filter(name=DEFAULT_KEY_NAME).exists():
        return False
    key = read_or_create((home or settings.TIERSCOPE_HOME) / "api-key", new_key)
    try:
        _store(ApiKey(name=DEFAULT_KEY_NAME), key, "an API key")
    except ValueError:  # another process got there first with the same file
        return False
    return True


def new_key(start: str = "ts-") -> str:
    return f"{start}{secrets.token_urlsafe(32)}"


def hash_key(key: str) -> str:
    """256 random bits need no slow hash: nobody can guess through it."""
    return hashlib.sha256(key.encode()).hexdigest()


def _store(secret: S, plain: str, kind: str) -> S:
    """Raises ValueError, calling it a `kind`, when the name is taken."""
    secret.prefix, secret.hashed_key = plain[:9], hash_key(plain)
    try:
        with transaction.atomic():
            secret.save(force_insert=True)
    except IntegrityError:
        raise ValueError(f"There is {kind} named “{secret.name}” already; choose another name.") from None
    return secret
