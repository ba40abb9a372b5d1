"""The first administrator. No default password: the first start makes a random one and keeps it in a 0600 file."""

import secrets
from pathlib import Path

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from dashboard.secret_files import read_or_create

USERNAME = "admin"
PASSWORD_FILE = "admin-password"  # noqa: S105 (a file's name)


def ensure_admin(home: Path) -> bool:
    """Creates the superuser `admin` with the password in `home`/admin-password; True if that was done now.

    Where any superuser is there already nothing happens, so that a changed password stays changed. Raises ValueError
    with a sentence where an ordinary user has taken the name.
    """
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return False
    password = read_or_create(home / PASSWORD_FILE, lambda: secrets.token_urlsafe(12))
    try:
        with transaction.atomic():
            users.create_superuser(username=USERNAME, password=password)
    except IntegrityError:  # the name is taken: by another process that starts right now, or by somebody
        if users.filter(is_superuser=True).exists():
            return False
        raise ValueError(
            f"There is no superuser, and “{USERNAME}” is an ordinary user; make one with manage.py createsuperuser."
        ) from None
    return True
