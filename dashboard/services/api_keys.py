"""API keys: made once, shown once, stored as a SHA-256 hash. Knows nothing about HTTP."""

import hashlib
import logging
import secrets
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q

from dashboard.models import ApiKey
from dashboard.secret_files import read_or_create
from dashboard.tenants import check_tenant

logger = logging.getLogger(__name__)

DEFAULT_KEY_NAME = "default"
_USED_EVERY = timedelta(minutes=1)


def create_api_key(name: str, tenant: str = "") -> tuple[ApiKey, str]:
    """The stored row and the key itself, which nobody can read again.

    Raises ValueError when the name is taken or the tenant is no name of one.
    """
    check_tenant(tenant)
    key = new_key()
    return _store(name, key, tenant), key


def find_api_key(key: str) -> ApiKey | None:
    """The active key that hashes to the same; one indexed look-up whatever is asked."""
    return ApiKey.objects.filter(hashed_key=hash_key(key), is_active=True).first()


def record_use(api_key: ApiKey, now: datetime) -> None:
    """Notes when the key was last used, at most once a minute: a read-mostly row stays one.

    A database that cannot be written to is logged and refuses nobody.
    """
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USED_EVERY)
    if api_key.last_used_at is None or api_key.last_used_at < now - _USED_EVERY:
        try:
            ApiKey.objects.filter(stale, pk=api_key.pk).update(last_used_at=now)
        except DatabaseError as error:
            logger.warning("the use of the API key %s was not noted: %s", api_key.name, error)


def ensure_default_key(home: Path | None = None) -> bool:
    """Makes the key `default` and its file `api-key` (0600) at the first start; True where it did.

    A key that was revoked or deleted together with its file stays away once a row of that name exists.
    """
    if ApiKey.objects.filter(name=DEFAULT_KEY_NAME).exists():
        return False
    key = read_or_create((home or settings.TIERSCOPE_HOME) / "api-key", new_key)
    try:
        _store(DEFAULT_KEY_NAME, key)
    except ValueError:  # another process got there first with the same file
        return False
    return True


def new_key() -> str:
    return f"ts-{secrets.token_urlsafe(32)}"


def hash_key(key: str) -> str:
    """256 random bits need no slow hash: nobody can guess through it."""
    return hashlib.sha256(key.encode()).hexdigest()


def _store(name: str, key: str, tenant: str = "") -> ApiKey:
    try:
        with transaction.atomic():
            return ApiKey.objects.create(name=name, tenant=tenant, prefix=key[:9], hashed_key=hash_key(key))
    except IntegrityError:
        raise ValueError(f"There is an API key named “{name}” already; choose another name.") from None
