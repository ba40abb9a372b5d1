"""What every start does first, and only the first one finds undone. Knows nothing about processes."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from dashboard.secret_files import close_to_others
from dashboard.services.accounts import ensure_admin
from dashboard.services.api_keys import ensure_default_key
from dashboard.services.sources import ensure_embedded
from dashboard.static_storage import collect

# What is kept in the home, as docs/operating.md lists it; the rest of a folder that somebody chose is not ours.
_OURS = ("tierscope.sqlite3*", "tiers", "models", "valkey", "logs", "run", "static")


def prepare() -> Iterator[str]:
    """Brings database, static files, the administrator and the default key up to date; says what is new.

    Safe to run at every start. Raises ValueError with a sentence where a person has to choose.
    """
    home = settings.TIERSCOPE_HOME
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    call_command("migrate", interactive=False, verbosity=0)
    collect()
    ensure_embedded()
    if ensure_admin(home):
        yield f"Made the administrator “admin”; the password is in {home / 'admin-password'}"
    if ensure_default_key(home):
        yield f"Made the API key “default”; it is in {home / 'api-key'}"
    close_to_others(_kept_in(home))


def _kept_in(home: Path) -> Iterator[Path]:
    return (path for pattern in _OURS for path in home.glob(pattern))
